// Writes the numbers of one query into the blanks of pieces of HTML, as `fill` does in viz/blanks.py.
const SHADES = 96, NUMBERS_FIT = 8, CELLS_FIT = 32, TOLD_FIT = 256 // as in viz/cells.py

function fill(place, { said, numbers, names }) {
  for (const node of place.querySelectorAll("[data-blank]")) {
    const [kind, start, count, limit] = node.dataset.blank.split(" ")
    const given = Array.from(numbers.subarray(+start, +start + +count))
    if (kind === "said") sentence(node, said)
    else if (kind in names) name(node, kind, names[kind][given[0]])
    else BLANKS[kind](node, given, numbers[limit])
  }
}

const BLANKS = {
  vector(node, values, limit) {
    const label = node.dataset.label
    if (values.length > TOLD_FIT) return band(node, values, limit, label)
    if (values.length > CELLS_FIT) return whole(node, values, limit, label)
    const few = values.length <= NUMBERS_FIT
    set(node, { class: few ? "vector" : "strip", role: few ? "group" : "img" })
    set(node, { "aria-label": few ? label : `${label}: ${values.map(short).join(", ")}` })
    cells(node, values.length).forEach((cell, index) => {
      const value = values[index]
      set(cell, { class: signed(value, limit), title: exact(value) })
      if (few) say(cell, short(value))
    })
  },
  number(node, [value], limit) {
    const hidden = value === -Infinity
    set(node, { class: "vector" })
    const [cell] = cells(node, 1)
    set(cell, { class: hidden ? "hidden" : signed(value, limit), title: hidden ? "hidden" : exact(value) })
    say(cell, short(value))
  },
  weight(node, [value]) {
    set(node, { class: "vector" })
    const [cell] = cells(node, 1)
    set(cell, { class: `w${step(value)}`, title: `${exact(value)} = ${percent(value)}` })
    say(cell, short(value))
  },
  bar(node, [value]) {
    set(node, { class: "bar" })
    set(cells(node, 1)[0], { style: `width:${fixed(100 * value, 2)}%` })
  },
  text: (node, [value]) => say(node, short(value)),
  terms(node, given) {
    const q = given.slice(0, given.length / 2), k = given.slice(given.length / 2)
    set(node, { class: "terms" })
    say(node, `${q.map((value, index) => `${factor(value)}·${factor(k[index])}`).join(" + ")} =`)
  },
}

function sentence(node, html) {
  set(node, { class: "say" })
  write(node, html)
}

function name(node, role, label) {
  set(node, { class: `token ${role}`, title: label })
  say(node, label)
}

function whole(node, values, limit, label) {
  const edge = (number) => ` 0 ${fixed((100 * number) / values.length, 2)}%`
  const shades = values.map((value, index) => `${shade(value, limit)}${edge(index + 1)}`)
  const title = values.map(exact).join(", ")
  set(node, { class: "strip whole", role: "img", "aria-label": label, title, style: gradient(shades) })
}

function band(node, values, limit, label) {
  const words = `${label}: ${values.length} × ${short(Math.min(...values))} … ${short(Math.max(...values))}`
  const style = gradient(values.map((value) => shade(value, limit)))
  set(node, { class: "strip band", role: "img", "aria-label": words, title: words, style })
}

const gradient = (shades) => `background:linear-gradient(90deg,${shades.join()})`
const step = (share) => even(SHADES * Math.min(Math.max(share, 0), 1))
const onScale = (value, limit) => step(0.5 + (0.5 * value) / limit)
const signed = (value, limit) => (Number.isFinite(value) ? `d${onScale(value, limit)}` : "")
const shade = (value, limit) => (Number.isFinite(value) ? `var(--s${onScale(value, limit)})` : "transparent")
const factor = (value) => (short(value).startsWith("−") ? `(${short(value)})` : short(value))

function cells(node, count) {
  while (node.children.length > count) node.lastChild.remove()
  while (node.children.length < count) node.append(document.createElement("i"))
  return [...node.children]
}

function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) if (node.getAttribute(name) !== value) node.setAttribute(name, value)
}

function say(node, text) {
  if (node.firstChild?.data !== text) node.textContent = text
}
