// Where some pieces of HTML stand, each beside its words. HTML is read into a document of its own, in which nothing runs
// or is fetched, and of that only known elements and attributes are taken over, where they differ from what stands here.
// Its blanks are filled with the numbers of the chosen query.
const HTML = "#text bdi br caption div i p small span strong table tbody td tfoot th thead tr"
const MATH = "math mfrac mi mn mo mrow mspace msqrt mstyle msub msubsup msup mtext"
const ELEMENTS = new Set(`${HTML} ${MATH}`.split(" "))
const ATTRIBUTES = new Set("aria-label class data-blank data-label displaystyle mathcolor role scope scriptlevel stretchy style tabindex title width".split(" "))

export default function ({ data: { name, words }, parentElement }) {
  const place = parentElement.querySelector(".place")
  while (place.children.length > words.length) place.lastChild.remove()
  while (place.children.length < words.length) place.append(row())
  const rows = [...place.children].map((row) => [...row.children])
  rows.forEach(([told], index) => write(told, words[index]))
  const draw = () => {
    const chosen = channel.pieces.of(channel.chosen)
    if (!chosen) return // what stands here stays until the numbers have come
    rows.forEach(([, piece], index) => write(piece, channel.pieces.html[name]?.[index] ?? ""))
    fill(place, chosen)
  }
  let frame
  const later = () => { // what is lighter shows the choice first
    cancelAnimationFrame(frame)
    frame = requestAnimationFrame(() => setTimeout(draw))
  }
  place.stop?.() // called again where words or theme change
  channel.addEventListener("pieces", draw)
  channel.addEventListener("chosen", later)
  draw()
  return (place.stop = () => {
    cancelAnimationFrame(frame)
    channel.removeEventListener("pieces", draw)
    channel.removeEventListener("chosen", later)
  })
}

function row() {
  const made = document.createElement("section")
  made.append(document.createElement("div"), document.createElement("div"))
  return made
}

function write(here, html) {
  if (here.html !== html) match(here, new DOMParser().parseFromString(html, "text/html").body)
  here.html = html
}

function match(here, wanted) {
  let next = here.firstChild
  for (let node = wanted.firstChild; node; node = node.nextSibling) {
    const name = node.nodeName.toLowerCase()
    if (!ELEMENTS.has(name)) continue
    if (next?.nodeName !== node.nodeName) {
      const made = name === "#text" ? new Text() : document.createElementNS(node.namespaceURI, name)
      next ? next.replaceWith(made) : here.append(made)
      next = made
    }
    if (name === "#text") {
      if (next.data !== node.data) next.data = node.data
    } else if (!next.isEqualNode(node)) {
      dress(next, node)
      match(next, node)
    }
    next = next.nextSibling
  }
  while (next) {
    const gone = next
    next = next.nextSibling
    gone.remove()
  }
}

function dress(here, wanted) {
  for (const name of wanted.getAttributeNames()) {
    if (!ATTRIBUTES.has(name)) continue
    const value = wanted.getAttribute(name)
    if (here.getAttribute(name) !== value) here.setAttribute(name, value)
  }
  for (const name of here.getAttributeNames()) if (!wanted.hasAttribute(name)) here.removeAttribute(name)
}
