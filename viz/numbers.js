// How numbers are written, as in viz/numbers.py.
const short = (value) => written(value, 2)
const exact = (value) => written(value, 4)

function percent(share) {
  if (share > 0 && share <= 0.005) return "<1 %"
  if (share >= 0.995 && share < 1) return ">99 %"
  return `${Number.isNaN(share) ? "nan" : fixed(100 * share, 0)} %`
}

function written(value, decimals) {
  if (Number.isNaN(value)) return "NaN"
  const signed = (text) => text.replace("-", "−")
  if (Math.abs(value) === Infinity) return signed(String(value).replace("Infinity", "∞"))
  if (Math.abs(value) >= 1e6) return signed(power(value, decimals))
  if (Number.isInteger(value)) return signed(String(value))
  const text = fixed(value, decimals)
  return /[1-9]/.test(text) ? signed(text) : "≈0"
}

// Halfway between two numbers the even one, as Python rounds; such a number has one binary digit more than decimals.
function fixed(value, decimals) {
  const halves = value * 2 ** (decimals + 1)
  if (!Number.isInteger(halves) || halves % 2 === 0) return value.toFixed(decimals)
  return (even(value * 10 ** decimals) / 10 ** decimals).toFixed(decimals)
}

function even(value) {
  const low = Math.floor(value)
  return value - low === 0.5 ? low + Math.abs(low % 2) : Math.round(value)
}

function power(value, decimals) {
  const halfway = new RegExp(`^(-?\\d\\.\\d{${decimals - 1}}[02468])50*e(.*)`).exec(value.toExponential(60))
  const [, digits, exponent] = halfway ?? /(.*)e(.*)/.exec(value.toExponential(decimals))
  return `${digits}e${exponent[0]}${exponent.slice(1).padStart(2, "0")}`
}
