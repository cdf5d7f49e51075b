// The numbers of all maps. Python packs each as a whole number of units of 10^-decimals, counted from `zero`;
// the largest codes are marks. What is read here is therefore exact in every digit it shows.
const HIDDEN = 65535, NOT_A_NUMBER = 65534, SMALL = 65533, SMALL_NEGATIVE = 65532, INFINITE = 65531, MARKS = 65531

async function unpack(packed, length) {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer())
  const codes = new Uint16Array(length) // all low bytes stand before all high ones, which packs better
  for (let i = 0; i < length; i++) codes[i] = bytes[i] | (bytes[length + i] << 8)
  return codes
}

class Numbers {
  constructor(codes, { shape, zero, decimals, words }) {
    Object.assign(this, { codes, zero, decimals, words })
    ;[this.maps, this.queries, this.keys] = shape
  }

  code(map, query, key) {
    return this.codes[(map * this.queries + query) * this.keys + key]
  }

  // As a number to draw with; marks other than hidden draw as the number they are nearest to.
  value(code) {
    if (code < MARKS) return (code - this.zero) / 10 ** this.decimals
    return code === INFINITE ? Infinity : code === HIDDEN || code === NOT_A_NUMBER ? NaN : 0
  }

  written(code) {
    if (code >= MARKS) return { [HIDDEN]: this.words.hidden, [NOT_A_NUMBER]: "NaN", [INFINITE]: "∞" }[code] ?? "≈0"
    return this.value(code).toFixed(this.decimals).replace("-", "−").replace(/^−(0\.?0*)$/, "$1")
  }

  // A weight as a share; its digits are those of the weight.
  percent(code) {
    if (code >= MARKS) return code === SMALL ? this.words.tiny : this.written(code)
    return this.words.percent.replace("{share}", (this.value(code) * 100).toFixed(this.decimals - 2))
  }

  // Whole percents where the code says which; halfway between two, the half itself.
  wholePercent(code) {
    const share = this.value(code)
    if (code >= MARKS && code !== SMALL) return this.written(code)
    if (code === SMALL || (share > 0 && share <= 0.005)) return this.words.percent.replace("{share}", "<1")
    if (share >= 0.995 && share < 1) return this.words.percent.replace("{share}", ">99")
    const hundredths = code - this.zero
    return this.words.percent.replace("{share}", hundredths % 100 === 50 ? (hundredths / 100).toFixed(1) : Math.round(hundredths / 100))
  }

  row(map, query) {
    const start = (map * this.queries + query) * this.keys
    return this.codes.subarray(start, start + this.keys)
  }
}
