// One number for every head of every layer, each a button. One stop for the Tab key; arrows walk from there.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".scores")
  const place = root.querySelector(".wide")
  const kept = place.querySelector("button[tabindex='0']")?.dataset
  root.style.setProperty("--mark", data.mark)
  const table = document.createElement("table")
  table.append(node("caption", data.label))
  const head = table.createTHead().insertRow()
  head.append(node("th", ""), ...data.columns.map((name) => scoped("col", name)))
  const body = table.createTBody()
  const buttons = data.cells.map((cells, row) => {
    const line = body.insertRow()
    line.append(scoped("row", data.rows[row]))
    return cells.map((cell, column) => {
      const button = node("button", cell.text)
      button.type = "button"
      button.title = cell.title
      button.style.cssText = cell.style
      button.setAttribute("aria-label", cell.title)
      button.setAttribute("aria-pressed", String(cell.chosen))
      button.classList.toggle("chosen", cell.chosen)
      button.tabIndex = -1
      Object.assign(button.dataset, { row, column })
      line.insertCell().append(button)
      return button
    })
  })
  const first = buttons[kept?.row ?? 0]?.[kept?.column ?? 0] ?? buttons[0][0]
  first.tabIndex = 0
  const focused = kept && place.contains(parentElement.getRootNode().activeElement)
  place.replaceChildren(table)
  if (focused) first.focus()

  const stand = (button) => {
    buttons.flat().forEach((one) => (one.tabIndex = one === button ? 0 : -1))
    button.focus()
  }
  table.onclick = (event) => {
    const button = event.target.closest("button")
    if (!button) return
    stand(button)
    setTriggerValue("pick", { layer: +button.dataset.row, head: +button.dataset.column })
  }
  table.onkeydown = (event) => {
    const here = event.target.closest("button")
    if (!here) return
    const [row, column] = [+here.dataset.row, +here.dataset.column]
    const to = {
      ArrowRight: [row, column + 1], ArrowLeft: [row, column - 1], ArrowDown: [row + 1, column], ArrowUp: [row - 1, column],
      Home: [row, 0], End: [row, buttons[row].length - 1],
    }[event.key]
    if (!to) return
    event.preventDefault()
    const next = buttons[to[0]]?.[to[1]]
    if (next) stand(next)
  }
}

const node = (tag, text) => Object.assign(document.createElement(tag), { textContent: text })
const scoped = (scope, text) => Object.assign(node("th", text), { scope })
