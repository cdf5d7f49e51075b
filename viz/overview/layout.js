// Where everything stands, in CSS pixels. Nothing here draws.
const GAP = 14, NAME = 18, LABEL = 92, LEAST_LABEL = 32, MOST_CELL = 44, LEAST_LABELLED = 11, LINES_WIDTH = 330, MOST_LINES_WIDTH = 520, EDGE = 4, FONT = 12

// As many maps side by side as make the cells largest; stacked layers keep a row each.
function arrangeMaps(width, active, numbers, layers, widest) {
  const count = Math.max(active.length, 1)
  const high = layers > 1 ? width : count > 16 ? Math.max(width * 0.62, 340) : 290
  const cell = (across, left, below) => {
    const down = Math.ceil(count / across)
    const wide = (width - left - (across - 1) * GAP) / (across * numbers.keys)
    const tall = (high - below - down * NAME - (down - 1) * GAP) / (down * numbers.queries)
    return Math.min(wide, tall, MOST_CELL)
  }
  const ways = layers > 1 ? [Math.ceil(count / layers)] : Array.from({ length: count }, (_, n) => n + 1)
  const best = (left, below) => ways.reduce((a, b) => (cell(b, left, below) > cell(a, left, below) ? b : a))
  let left = widest.query + 8, below = widest.key + 8
  let across = best(left, below)
  const labelled = cell(across, left, below) >= LEAST_LABELLED
  if (!labelled) [left, below] = [EDGE, EDGE]
  if (!labelled) across = best(left, below)
  const side = Math.max(cell(across, left, below), 0.05)
  const step = [numbers.keys * side + GAP, numbers.queries * side + NAME + GAP]
  const down = Math.ceil(count / across)
  return {
    side, left, below, labelled, across, down, step,
    width: left + across * step[0] - GAP + EDGE,
    height: down * step[1] - GAP + below,
    corner: (place) => [left + (place % across) * step[0], NAME + Math.floor(place / across) * step[1]],
  }
}

function cellAt(layout, numbers, count, x, y) {
  const column = Math.floor((x - layout.left) / layout.step[0]), row = Math.floor(y / layout.step[1])
  const place = row * layout.across + column
  if (column < 0 || column >= layout.across || row < 0 || place >= count) return null
  const [left, top] = layout.corner(place)
  const key = Math.floor((x - left) / layout.side), query = Math.floor((y - top) / layout.side)
  const inside = key >= 0 && key < numbers.keys && query >= 0 && query < numbers.queries
  return inside ? { place, query, key } : null
}

function arrangeLines(width, numbers, widest) {
  const most = Math.max(numbers.queries, numbers.keys)
  const row = Math.min(Math.max(300 / most, Math.min(9, 600 / most)), 24)
  const [left, right] = [widest.query, widest.key].map((wide) => 1.1 * Math.min(Math.max(wide, LEAST_LABEL), LABEL) + 10) // bold is wider
  const y = (count) => (index) => (most - count) * row * 0.5 + (index + 0.5) * row + NAME
  return { width, height: most * row + NAME, row, left, right: width - right, query: y(numbers.queries), key: y(numbers.keys) }
}

function tokenAt(layout, numbers, x, y) {
  const side = x < layout.left + 12 ? "query" : x > layout.right - 12 ? "key" : null
  if (!side) return null
  const index = Math.round((y - layout[side](0)) / layout.row)
  return index >= 0 && index < (side === "query" ? numbers.queries : numbers.keys) ? { [side]: index } : null
}
