// Canvas painting. `ink` holds every colour, already resolved for the theme.
function readInk(root, data) {
  const probe = root.appendChild(document.createElement("i"))
  const rgb = (css) => {
    probe.style.color = css
    return getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number)
  }
  const scale = ramp(data.scale.map(rgb))
  const css = (value) => `rgb(${rgb(value).join(" ")})`
  const ink = {
    scale,
    pixels: Uint32Array.from(scale, pixel),
    textPixel: pixel(rgb("var(--st-text-color)")),
    text: css("var(--st-text-color)"),
    paper: css("var(--st-background-color)"),
    query: css(data.roles.query),
    key: css(data.roles.key),
    heads: data.heads.map(css),
    font: `${FONT}px ${getComputedStyle(root).fontFamily}`,
  }
  probe.remove()
  return ink
}

// 256 steps along a scale, mixed linearly as the figures beside it mix them.
function ramp(stops) {
  return Array.from({ length: 256 }, (_, n) => {
    const place = (n / 255) * (stops.length - 1), low = Math.min(Math.floor(place), stops.length - 2)
    return stops[low].map((c, i) => Math.round(c + (stops[low + 1][i] - c) * (place - low)))
  })
}

function canvasContext(canvas, { width, height }) {
  const ratio = window.devicePixelRatio || 1, size = [Math.ceil(width * ratio), Math.ceil(height * ratio)]
  const context = canvas.getContext("2d")
  if (canvas.width !== size[0] || canvas.height !== size[1]) {
    ;[canvas.width, canvas.height] = size
    canvas.style.width = `${width}px`
    canvas.style.height = `${height}px`
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0)
  context.clearRect(0, 0, width + 1, height + 1)
  return context
}

function paintMaps(canvas, view) {
  const { layout, numbers, active, data, ink } = view
  const context = canvasContext(canvas, layout)
  context.font = ink.font
  const picture = new OffscreenCanvas(numbers.keys, numbers.queries)
  active.forEach((map, place) => {
    const [x, y] = layout.corner(place)
    const wide = numbers.keys * layout.side, tall = numbers.queries * layout.side
    const hides = paintPixels(picture, numbers, map, data, ink)
    context.imageSmoothingEnabled = layout.side < 1 // smaller than a pixel: mix, so that no row is lost
    if (hides) hatch(context, x, y, wide, tall, ink)
    context.drawImage(picture, x, y, wide, tall)
    context.strokeStyle = ink.text
    context.globalAlpha = 0.25
    context.strokeRect(x, y, wide, tall)
    context.globalAlpha = 1
    context.fillStyle = ink.text
    const name = context.measureText(data.names[map]).width <= wide ? data.names[map] : data.labels[map]
    context.fillText(fitted(context, name, wide), x, y - 5)
  })
  if (layout.labelled) paintLabels(context, view)
}

// One pixel a cell. What is hidden stays clear, so that the hatching below shows; NaN is drawn in the text's colour.
function paintPixels(picture, numbers, map, data, ink) {
  const context = picture.getContext("2d"), image = context.createImageData(numbers.keys, numbers.queries)
  const pixels = new Uint32Array(image.data.buffer)
  let place = 0, hides = false
  for (let query = 0; query < numbers.queries; query++) {
    const row = numbers.row(map, query), most = data.by_row ? rowMost(numbers, row) : data.limit
    const [middle, reach] = data.signed ? [127.5, 127.5] : [0, 255], unit = reach / (most * numbers.units)
    for (const code of row) {
      const level = code < MARKS ? middle + (code - numbers.zero) * unit : code === INFINITE || code === NEARLY_ONE ? 255 : middle
      const plain = ink.pixels[Math.round(Math.min(Math.max(level, 0), 255))]
      pixels[place++] = code === HIDDEN ? 0 : code === NOT_A_NUMBER ? ink.textPixel : plain
      hides ||= code === HIDDEN
    }
  }
  context.putImageData(image, 0, 0)
  return hides
}

// As an ImageData's bytes stand in memory.
const pixel = ([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r

function rowMost(numbers, row) {
  let most = 0
  for (const code of row) if (code !== INFINITE) most = Math.max(most, Math.abs(numbers.value(code)) || 0)
  return most || 1
}

function hatch(context, x, y, wide, tall, ink) {
  context.save()
  context.beginPath()
  context.rect(x, y, wide, tall)
  context.clip()
  context.strokeStyle = ink.text
  context.globalAlpha = 0.35
  context.beginPath()
  for (let offset = -tall; offset < wide; offset += 6) {
    context.moveTo(x + offset, y + tall)
    context.lineTo(x + offset + tall, y)
  }
  context.stroke()
  context.restore()
}

// Tokens beside the first column of maps and below the lowest map of every column.
function paintLabels(context, { layout, numbers, active, data, ink }) {
  context.fillStyle = ink.text
  context.textBaseline = "middle"
  active.forEach((_, place) => {
    const [x, y] = layout.corner(place)
    if (place % layout.across === 0) {
      context.textAlign = "right"
      data.queries.forEach((token, n) => context.fillText(fitted(context, token, LABEL), x - 6, y + (n + 0.5) * layout.side))
    }
    if (place + layout.across < active.length) return
    context.textAlign = "right"
    data.keys.forEach((token, n) => {
      context.save()
      context.translate(x + (n + 0.5) * layout.side, y + numbers.queries * layout.side + 6)
      context.rotate(-Math.PI / 2)
      context.fillText(fitted(context, token, LABEL), 0, 0)
      context.restore()
    })
  })
}

const fits = new Map()
function fitted(context, text, width) {
  const name = `${width.toFixed(0)} ${context.font} ${text}`
  if (!fits.has(name)) {
    if (fits.size > 5000) fits.clear()
    fits.set(name, context.measureText(text).width > width ? cut(context, [...text], width) : text)
  }
  return fits.get(name)
}

// As many letters as there is room for, found by halves, since a token may be as long as a text; one at least.
function cut(context, letters, width) {
  const first = (count) => `${letters.slice(0, count).join("")}…`
  let fitting = 1, over = letters.length
  while (over - fitting > 1) {
    const middle = (fitting + over) >> 1
    if (context.measureText(first(middle)).width > width) over = middle
    else fitting = middle
  }
  return letters.length > 1 ? first(fitting) : letters.join("")
}

// What is looked at stays lit, in every map at once; the rest steps back. What is chosen has an outline.
function paintMarks(canvas, { layout, numbers, active, ink, look, chosen }) {
  const context = canvasContext(canvas, layout)
  const { side } = layout
  active.forEach((map, place) => {
    const [x, y] = layout.corner(place)
    const wide = numbers.keys * side, tall = numbers.queries * side
    const band = (query) => [x, y + query * side, wide, side]
    const lit = [...chosen.also.map(band)]
    if (look?.query !== undefined) lit.push(band(look.query))
    const column = look?.key === undefined ? null : [x + look.key * side, y, side, tall]
    if (look) {
      context.fillStyle = ink.paper
      context.globalAlpha = 0.55
      context.fillRect(x, y, wide, tall)
      context.globalAlpha = 1
      for (const place of column ? [...lit, column] : lit) context.clearRect(...place)
    }
    for (const query of [chosen.query, ...chosen.also]) if (query !== null) outline(context, band(query), ink.query, 2)
    if (look?.query !== undefined) outline(context, band(look.query), ink.query, 1.25)
    if (column) outline(context, column, ink.key, 1.25)
    if (map === chosen.map && active.length > 1) outline(context, [x - 3, y - 3, wide + 6, tall + 6], ink.text, 1.5)
    if (column && look.map === map && look.query !== undefined)
      outline(context, [x + look.key * side, y + look.query * side, side, side], ink.text, 2)
  })
}

function outline(context, [x, y, wide, tall], colour, width) {
  context.strokeStyle = colour
  context.lineWidth = width
  context.strokeRect(x - width / 2, y - width / 2, wide + width, tall + width) // around the cells, so that none is covered
}

const FAINTEST = 0.02 // a line this faint cannot be seen

function paintLines(canvas, view) {
  const { lines, numbers, data, ink } = view
  const context = canvasContext(canvas, lines)
  context.font = ink.font
  for (let query = 0; query < numbers.queries; query++) strokeRow(context, view, query, 0.6)
  writeTokens(context, lines, data.queries, "query", "right", ink)
  writeTokens(context, lines, data.keys, "key", "left", ink)
}

function paintLooked(canvas, view) {
  const { lines, numbers, data, ink, look, chosen } = view
  const context = canvasContext(canvas, lines)
  context.font = ink.font
  if (look) {
    context.fillStyle = ink.paper
    context.globalAlpha = 0.82
    context.fillRect(0, 0, lines.width, lines.height)
    context.globalAlpha = 1
  }
  const rows = [...(look?.query === undefined ? (look ? [] : [chosen.query]) : [look.query]), ...chosen.also].filter(
    (n) => n !== null && n < numbers.queries, // what is chosen may be of the text before
  )
  for (const query of rows) strokeRow(context, view, query, 1)
  if (look?.key !== undefined && look.query === undefined)
    for (let query = 0; query < numbers.queries; query++) strokeRow(context, view, query, 1, look.key)
  context.font = `650 ${ink.font}`
  for (const query of rows) writeToken(context, lines, data.queries, "query", "right", query, ink)
  if (look?.key !== undefined) writeToken(context, lines, data.keys, "key", "left", look.key, ink)
}

function strokeRow(context, { lines, numbers, lineMaps, data, ink }, query, strength, only) {
  for (const map of lineMaps) {
    const row = numbers.row(map, query)
    context.strokeStyle = ink.heads[map % ink.heads.length]
    for (let key = only ?? 0; key < (only === undefined ? numbers.keys : only + 1); key++) {
      const share = Math.min(Math.abs(numbers.value(row[key])) / data.limit, 1)
      if (!(share >= FAINTEST)) continue // nor is a hidden one or NaN a line
      context.globalAlpha = share * strength
      context.lineWidth = 1 + share
      context.beginPath()
      context.moveTo(lines.left, lines.query(query))
      context.lineTo(lines.right, lines.key(key))
      context.stroke()
    }
  }
  context.globalAlpha = 1
}

function writeTokens(context, lines, tokens, side, align, ink) {
  const every = Math.ceil((FONT + 1) / lines.row)
  for (let n = 0; n < tokens.length; n += every) writeToken(context, lines, tokens, side, align, n, ink, ink.text)
  context.textAlign = align
  context.textBaseline = "alphabetic"
  context.fillStyle = ink[side]
  context.fillText(side, side === "query" ? lines.left - 6 : lines.right + 6, FONT)
}

function writeToken(context, lines, tokens, side, align, index, ink, colour = ink[side]) {
  const room = side === "query" ? lines.left - 8 : lines.width - lines.right - 8
  const text = fitted(context, tokens[index], room)
  const x = side === "query" ? lines.left - 6 : lines.right + 6, y = lines[side](index)
  context.textAlign = align
  context.textBaseline = "middle"
  if (colour !== ink.text) {
    const wide = context.measureText(text).width + 4
    context.fillStyle = ink.paper
    context.fillRect(align === "right" ? x - wide : x, y - FONT / 2 - 2, wide, FONT + 4)
  }
  context.fillStyle = colour
  context.fillText(text, x, y)
}

// CSS for a cell of this colour, with the ink that contrasts more (WCAG 2.2, relative luminance).
function cellStyle(rgb) {
  const [r, g, b] = rgb.map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
  const luminance = 0.2126 * r + 0.7152 * g + 0.0722 * b
  return `background:rgb(${rgb.join(" ")});color:${(luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) ? "#000" : "#fff"}`
}
