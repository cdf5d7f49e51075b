// The numbers of all maps. Python packs each as a whole number of units of 10^-decimals, counted from `zero`;
// the largest codes are marks. What is read here is therefore exact in every digit it shows.
const HIDDEN = 65535, NOT_A_NUMBER = 65534, SMALL = 65533, SMALL_NEGATIVE = 65532, INFINITE = 65531, NEARLY_ONE = 65530
const MARKS = NEARLY_ONE

async function unpack(packed, length) {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer())
  const codes = new Uint16Array(length) // all low bytes stand before all high ones, which packs better
  for (let i = 0; i < length; i++) codes[i] = bytes[i] | (bytes[length + i] << 8)
  return codes
}

class Numbers {
  constructor(codes, { shape, zero, decimals, signed, words }) {
    Object.assign(this, { codes, zero, decimals, signed, words, units: 10 ** decimals })
    ;[this.maps, this.queries, this.keys] = shape
  }

  code(map, query, key) {
    return this.codes[(map * this.queries + query) * this.keys + key]
  }

  // As a number to draw with: NaN where there is none, else the nearest that has these digits.
  value(code) {
    if (code < MARKS) return (code - this.zero) / this.units
    return { [SMALL]: 0, [SMALL_NEGATIVE]: 0, [INFINITE]: Infinity, [NEARLY_ONE]: 1 }[code] ?? NaN
  }

  // As viz/numbers.py writes it: four decimals where there is room for them; a weight of 0 or 1 has none.
  written(code) {
    const mark = { [HIDDEN]: this.words.hidden, [NOT_A_NUMBER]: "NaN", [INFINITE]: "∞", [SMALL]: "≈0", [SMALL_NEGATIVE]: "≈0" }[code]
    if (mark) return mark
    const whole = code === this.zero || (code === this.units && !this.signed)
    return this.value(code).toFixed(whole ? 0 : Math.max(this.decimals, 0)).replace("-", "−")
  }

  // A weight as a share; its digits are those of the weight.
  percent(code) {
    const share = { [SMALL]: this.words.tiny, [NEARLY_ONE]: this.words.nearly_all }[code]
    if (share || code >= MARKS) return share ?? this.written(code)
    return this.words.percent.replace("{share}", (this.value(code) * 100).toFixed(Math.max(this.decimals - 2, 0)))
  }

  // Whole percents where the code says which; halfway between two, the half itself.
  wholePercent(code) {
    const share = this.value(code)
    if (!Number.isFinite(share)) return this.written(code)
    if (code === SMALL || (share > 0 && share <= 0.005)) return this.words.percent.replace("{share}", "<1")
    if (code === NEARLY_ONE || (share >= 0.995 && share < 1)) return this.words.percent.replace("{share}", ">99")
    const hundredths = code - this.zero
    return this.words.percent.replace("{share}", hundredths % 100 === 50 ? (hundredths / 100).toFixed(1) : Math.round(hundredths / 100))
  }

  row(map, query) {
    const start = (map * this.queries + query) * this.keys
    return this.codes.subarray(start, start + this.keys)
  }
}
