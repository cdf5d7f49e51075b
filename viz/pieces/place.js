// Where one piece of HTML stands. It is read into a document of its own, in which nothing runs or is fetched, and of
// that only known elements and attributes are taken over, where they differ from what stands here.
const ELEMENTS = new Set("#text b bdi caption code div i p small span sub sup table tbody td tfoot th thead tr".split(" "))
const ATTRIBUTES = new Set("aria-label class role scope style tabindex title".split(" "))

export default function ({ data: name, parentElement }) {
  const place = parentElement.querySelector(".place")
  let shown
  const draw = () => {
    const html = channel.pieces[name] ?? ""
    if (html !== shown) match(place, new DOMParser().parseFromString(html, "text/html").body)
    shown = html
  }
  place.stop?.() // called again where the theme changes
  channel.addEventListener("pieces", draw)
  draw()
  return (place.stop = () => channel.removeEventListener("pieces", draw))
}

function match(here, wanted) {
  let next = here.firstChild
  for (let node = wanted.firstChild; node; node = node.nextSibling) {
    const name = node.nodeName.toLowerCase()
    if (!ELEMENTS.has(name)) continue
    if (next?.nodeName !== node.nodeName) {
      const made = name === "#text" ? new Text() : document.createElement(name)
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
