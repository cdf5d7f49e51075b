// The sentence as tokens one can pick. Tokens arrive as text and are only ever set with textContent.
const CROWDED = 40

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".sentence")
  const [queries, keys] = root.querySelectorAll(".row")
  root.style.setProperty("--query", data.colour)
  root.classList.toggle("crowded", data.queries.length > CROWDED || data.keys.length > CROWDED)
  queries.setAttribute("aria-label", data.label)

  fill(queries, data.queries, "button")
  fill(keys, data.keys, "span")
  keys.hidden = data.keys.length === 0
  mark(data.query)

  function mark(chosen) {
    queries.querySelectorAll("button").forEach((chip, index) => {
      chip.setAttribute("aria-pressed", String(index === chosen))
      chip.tabIndex = index === chosen ? 0 : -1
    })
  }

  queries.onclick = (event) => {
    const index = [...queries.children].indexOf(event.target.closest("button"))
    if (index < 0) return
    mark(index) // at once; the numbers follow from the server
    setTriggerValue("pick", index)
  }

  queries.onkeydown = (event) => {
    const last = queries.children.length - 1
    const here = [...queries.children].indexOf(event.target.closest("button"))
    const to = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: last }[event.key]
    if (to === undefined) return
    event.preventDefault()
    queries.children[Math.min(Math.max(to, 0), last)].focus()
  }
}

function fill(row, tokens, tag) {
  while (row.children.length > tokens.length) row.lastChild.remove()
  while (row.children.length < tokens.length) row.append(chip(tag))
  tokens.forEach((token, index) => {
    const node = row.children[index]
    node.style.cssText = token.style
    node.classList.toggle("hidden-key", token.hidden)
    node.firstChild.textContent = token.label
    node.lastChild.textContent = token.share
    node.lastChild.hidden = token.share === ""
  })
}

function chip(tag) {
  const node = document.createElement(tag)
  node.className = "chip"
  if (tag === "button") node.type = "button"
  else node.setAttribute("role", "listitem")
  node.append(document.createElement("bdi"), document.createElement("small"))
  return node
}
