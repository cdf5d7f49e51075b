// The sentence as tokens one can pick. Tokens arrive as text and are only ever set with textContent.
// It also speaks for the page: what the other components want chosen goes to Python from here, since only this one
// stands where a choice draws little again.
const CROWDED = 40
const PATIENCE = 2000 // milliseconds in which Python's answer to an earlier pick is passed over

const cleanups = new WeakMap()

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".sentence")
  const [queries, keys] = root.querySelectorAll(".row")
  root.style.setProperty("--query", data.colour)
  root.classList.toggle("crowded", data.queries.length > CROWDED || data.keys.length > CROWDED)
  queries.setAttribute("aria-label", data.label)
  keys.hidden = data.keys.length === 0
  keys.tabIndex = data.keys.length > CROWDED ? 0 : -1 // then it scrolls
  const earlier = data.turn !== channel.turn && performance.now() - channel.picked < PATIENCE
  const known = earlier || JSON.stringify(channel.chosen) === JSON.stringify(data.chosen) // nothing to draw again
  if (!known) channel.chosen = data.chosen
  rest()
  if (!known) tell("chosen", {})

  function rest() {
    fill(queries, data.queries, "button")
    fill(keys, data.keys, "span")
    mark()
  }

  function mark() {
    const { query, also } = channel.chosen
    queries.querySelectorAll("button").forEach((chip, index) => {
      chip.setAttribute("aria-pressed", String(index === query || also.includes(index)))
      chip.tabIndex = index === query ? 0 : -1
    })
  }

  // At once here, in the maps and in the walk; Python follows, and is asked first, since it takes longest.
  function choose(chosen) {
    channel.turn += 1
    channel.picked = performance.now()
    setTriggerValue("pick", { ...chosen, turn: channel.turn })
    channel.chosen = chosen
    mark()
    tell("chosen", {})
  }

  queries.onclick = (event) => {
    const index = [...queries.children].indexOf(event.target.closest("button"))
    if (index < 0) return
    const { query, also } = channel.chosen
    const added = also.includes(index) ? also.filter((one) => one !== index) : [...also, index]
    choose({ ...channel.chosen, ...(event.shiftKey && index !== query ? { also: added } : { query: index, also: [] }) })
  }

  queries.onkeydown = (event) => {
    if (event.key === "Escape" && channel.chosen.also.length) return choose({ ...channel.chosen, also: [] })
    const last = queries.children.length - 1
    const here = [...queries.children].indexOf(event.target.closest("button"))
    const to = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: last }[event.key]
    if (to === undefined) return
    event.preventDefault()
    queries.children[Math.min(Math.max(to, 0), last)].focus()
  }

  for (const [row, side] of [[queries, "query"], [keys, "key"]]) {
    row.onpointerover = (event) => {
      const index = [...row.children].indexOf(event.target.closest(".chip"))
      if (index >= 0) tell("look", { look: { [side]: index }, from: root })
    }
    row.onpointerleave = () => tell("look", { look: null, from: root })
  }

  const onLook = ({ detail: { look } }) =>
    queries.querySelectorAll(".chip").forEach((chip, index) => chip.classList.toggle("looked-at", look?.query === index))
  // Pointing at a query anywhere shows its shares here.
  const onRow = ({ detail: { row } }) => {
    if (!row) return rest()
    const [place, tokens, tag] = keys.hidden ? [queries, data.queries, "button"] : [keys, data.keys, "span"]
    fill(place, tokens.map((token, index) => ({ ...token, ...row[index] })), tag)
  }
  const onPick = ({ detail }) => choose(detail)
  cleanups.get(parentElement)?.()
  const heard = { look: onLook, row: onRow, pick: onPick }
  for (const name in heard) channel.addEventListener(name, heard[name])
  const cleanup = () => {
    for (const name in heard) channel.removeEventListener(name, heard[name])
  }
  cleanups.set(parentElement, cleanup)
  return cleanup
}

function fill(row, tokens, tag) {
  while (row.children.length > tokens.length) row.lastChild.remove()
  while (row.children.length < tokens.length) row.append(chip(tag))
  tokens.forEach((token, index) => {
    const node = row.children[index], before = node.token
    node.token = token
    if (before?.style !== token.style) node.style.cssText = token.style
    if (before?.hidden !== token.hidden) node.classList.toggle("hidden-key", token.hidden)
    if (before?.label !== token.label) node.firstChild.textContent = token.label
    if (before?.share === token.share) return
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
