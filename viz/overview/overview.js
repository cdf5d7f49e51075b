// All heads at once. Hovering answers here, within a frame; choosing goes to Python. Tokens arrive as text and are
// only ever drawn, or set with textContent.

const views = new WeakMap()

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".overview")
  if (!views.has(parentElement)) views.set(parentElement, new Overview(root))
  const view = views.get(parentElement)
  view.choose = (pick) => setTriggerValue("pick", pick)
  view.receive(data)
  return () => {
    view.close()
    views.delete(parentElement)
  }
}

class Overview {
  constructor(root) {
    this.root = root
    this.part = (name) => root.querySelector(`.${name}`)
    ;[this.mapsBase, this.mapsMarks] = this.part("maps").children
    ;[this.linesBase, this.linesMarks] = this.part("lines").children
    this.muted = new Set()
    this.look = null
    this.cursor = { query: 0, key: 0, map: 0 }
    this.resized = new ResizeObserver(() => this.root.clientWidth !== this.width && this.draw())
    this.resized.observe(root)
    this.onChosen = () => this.mark()
    this.onLook = ({ detail: { look, from } }) => from !== this && this.data && this.point(look, from)
    channel.addEventListener("chosen", this.onChosen)
    channel.addEventListener("look", this.onLook)
    this.listen()
  }

  close() {
    this.resized.disconnect()
    channel.removeEventListener("chosen", this.onChosen)
    channel.removeEventListener("look", this.onLook)
  }

  async receive(data) {
    const packed = data.codes.getChildAt(0).toArray()
    const arrival = (this.arrival = {})
    const length = data.shape[0] * data.shape[1] * data.shape[2]
    const codes = data.id === this.data?.id ? this.numbers.codes : await unpack(packed, length)
    if (this.arrival !== arrival) return // something newer came meanwhile
    const other = this.data?.names.join() !== data.names.join()
    this.data = data
    this.numbers = new Numbers(codes, data)
    if (other) this.muted.clear()
    this.look = null
    for (const side of ["query", "key"]) this.root.style.setProperty(`--${side}`, data.roles[side])
    this.part("maps").setAttribute("aria-label", data.words.label)
    this.part("maps").setAttribute("aria-roledescription", data.words.kind)
    this.part("heads").setAttribute("aria-label", data.words.heads)
    this.part("keys").textContent = data.words.keys
    this.root.querySelector("summary").textContent = data.words.table
    this.root.querySelector(".scroll").setAttribute("aria-label", data.words.table)
    this.root.dataset.shape = data.shape.join()
    this.part("pictures").hidden = codes.length === 0
    this.fillHeads()
    this.draw()
  }

  get active() {
    return this.data.names.map((_, map) => map).filter((map) => !this.muted.has(map))
  }

  // ---- drawing ----

  draw() {
    if (!this.numbers?.codes.length || !this.root.isConnected) return // taken off the page, it has no colours
    const { data, numbers } = this
    this.width = this.root.clientWidth
    this.ink = readInk(this.root, data)
    const widest = this.widest()
    const beside = this.width >= 860 && data.lines
    const room = this.width - 8
    this.maps = arrangeMaps(beside ? room - LINES_WIDTH - 24 : room, this.active, numbers, data.layers, widest)
    const rest = beside ? Math.min(room - this.maps.width - 24, MOST_LINES_WIDTH) : Math.min(room, LINES_WIDTH)
    this.lines = data.lines ? arrangeLines(rest, numbers, widest) : null
    this.part("lines").hidden = !this.lines
    paintMaps(this.mapsBase, this.scene(this.maps))
    if (this.lines) paintLines(this.linesBase, this.scene(this.maps))
    this.mark()
  }

  widest() {
    const context = this.mapsBase.getContext("2d")
    context.font = this.ink.font
    const widest = (tokens) => Math.min(Math.max(0, ...tokens.slice(0, 600).map((t) => context.measureText(t).width)), LABEL)
    return { query: widest(this.data.queries), key: widest(this.data.keys) }
  }

  // Lines are those of the chosen layer, or of the one head pointed at by its name.
  scene(layout) {
    const { numbers, data, ink, look, lines, active, chosenMap: map } = this
    const first = Math.floor(map / data.heads_per_layer) * data.heads_per_layer
    const layer = active.filter((one) => one >= first && one < first + data.heads_per_layer)
    const lineMaps = look?.map !== undefined && look.key === undefined ? [look.map] : layer
    return { layout, numbers, data, ink, look, lines, active, lineMaps, chosen: { ...channel.chosen, map } }
  }

  mark() {
    if (this.frame || !this.numbers) return
    this.frame = requestAnimationFrame(() => {
      this.frame = null
      if (!this.maps) return
      const scene = this.scene(this.maps)
      paintMarks(this.mapsMarks, scene)
      if (this.lines) paintLooked(this.linesMarks, scene)
      this.part("heads").querySelectorAll("[data-map]").forEach((chip) => chip.classList.toggle("chosen", +chip.dataset.map === scene.chosen.map))
      this.root.dataset.query = channel.chosen.query ?? ""
      this.root.dataset.look = look(this.look)
      this.readOut(scene)
      if (this.root.querySelector("details").open) this.fillTable()
    })
  }

  // ---- pointing ----

  point(look, from) {
    if (same(look, this.look)) return
    this.look = look
    if (from === this) tell("look", { look, from })
    tell("row", { row: this.rowOf(look) })
    this.mark()
  }

  // Shares of the looked-at query in one head, for the tokens of the sentence.
  rowOf(look) {
    if (look?.query === undefined || this.data.signed) return null
    const { numbers, ink } = this, row = numbers.row(look.map ?? this.chosenMap, look.query)
    return Array.from(row, (code) => {
      const shade = ink.scale[Math.round(255 * numbers.value(code))]
      return { share: numbers.wholePercent(code), style: shade ? cellStyle(shade) : "", hidden: code === HIDDEN }
    })
  }

  get chosenMap() {
    const { summary, first, names } = this.data
    return summary ? 0 : Math.min(channel.chosen.head + first, names.length - 1)
  }

  listen() {
    const maps = this.part("maps"), lines = this.part("lines")
    const at = (event) => {
      const box = maps.getBoundingClientRect()
      if (!this.maps) return null
      const { active } = this
      const cell = cellAt(this.maps, this.numbers, active.length, event.clientX - box.left, event.clientY - box.top)
      return cell && { query: cell.query, key: cell.key, map: active[cell.place] }
    }
    const token = (event) => {
      const box = lines.getBoundingClientRect()
      return this.lines && tokenAt(this.lines, this.numbers, event.clientX - box.left, event.clientY - box.top)
    }
    maps.addEventListener("pointermove", (event) => this.point(at(event), this))
    lines.addEventListener("pointermove", (event) => this.point(token(event), this))
    for (const one of [maps, lines]) one.addEventListener("pointerleave", () => this.point(null, this))
    maps.addEventListener("click", (event) => this.pick(at(event), event.shiftKey))
    lines.addEventListener("click", (event) => this.pick(token(event), event.shiftKey))
    maps.addEventListener("keydown", (event) => this.walk(event))
    maps.addEventListener("blur", () => this.point(null, this))
    this.root.querySelector("details").addEventListener("toggle", () => this.fillTable())
  }

  // The chosen query changes at once; Python follows. Another head concerns more of the page than the query does.
  pick(look, more) {
    if (look?.query === undefined) return
    const { query, also, head } = channel.chosen
    const [layer, next] = this.place(look.map)
    this.cursor = { ...this.cursor, ...look }
    const added = also.includes(look.query) ? also.filter((n) => n !== look.query) : [...also, look.query]
    const chosen = more && query !== null && look.query !== query ? { query, head, also: added } : { query: look.query, head: next, also: [] }
    const elsewhere = !more && (next !== head || (layer !== null && layer !== this.data.layer))
    channel.chosen = { ...chosen, elsewhere: elsewhere || channel.chosen.elsewhere }
    tell("chosen", {})
    if (elsewhere) this.choose({ query: look.query, head: next, layer })
    else tell("pick", channel.chosen)
  }

  // Layer and head of a map; a summary of heads belongs to the one chosen.
  place(map) {
    const { summary, heads_per_layer, layers } = this.data
    if (map === undefined || summary) return [null, channel.chosen.head]
    return [layers > 1 ? Math.floor(map / heads_per_layer) : null, map % heads_per_layer]
  }

  walk(event) {
    const { numbers, cursor, active, data } = this
    const last = { query: numbers.queries - 1, key: numbers.keys - 1, map: active.length - 1 }
    const place = Math.max(active.indexOf(cursor.map), 0)
    const to = {
      ArrowRight: { key: cursor.key + 1 }, ArrowLeft: { key: cursor.key - 1 },
      ArrowDown: { query: cursor.query + 1 }, ArrowUp: { query: cursor.query - 1 },
      Home: { key: 0 }, End: { key: last.key },
      PageDown: { map: place + 1 }, PageUp: { map: place - 1 },
    }[event.key]
    const within = (value, most) => Math.min(Math.max(value, 0), Math.max(most, 0))
    if (event.key === "Escape") this.letGo()
    else if (event.key === "Enter") this.pick(cursor, event.shiftKey)
    else if (event.key === "r" || event.key === "R") this.say(this.sentence(cursor.map, cursor.query))
    else if (to) {
      if (to.map !== undefined) to.map = active[within(to.map, last.map)]
      if (to.query !== undefined) to.query = within(to.query, last.query)
      if (to.key !== undefined) to.key = within(to.key, last.key)
      Object.assign(cursor, to)
      this.point({ ...cursor }, this)
      this.say(this.spokenCell(cursor))
    } else return
    event.preventDefault()
  }

  letGo() {
    channel.chosen = { ...channel.chosen, also: [] }
    this.look = null
    tell("look", { look: null, from: this })
    tell("row", { row: null })
    tell("chosen", {})
    tell("pick", channel.chosen)
    this.say("")
  }

  // ---- words ----

  say(words) {
    this.part("spoken").textContent = words
  }

  spokenCell({ query, key, map }) {
    const { data, numbers } = this
    const code = numbers.code(map, query, key)
    const value = data.signed ? numbers.written(code) : this.spokenShare(code)
    return fill(data.words.cell, { query: data.queries[query], key: data.keys[key], head: data.names[map], value })
  }

  spokenShare(code) {
    return this.numbers.percent(code).replace("%", this.data.words.percent_spoken)
  }

  sentence(map, query, most = 6) {
    const { data, numbers } = this
    const row = Array.from(numbers.row(map, query), (code, key) => ({ code, key })).filter(({ code }) => !Number.isNaN(numbers.value(code)))
    row.sort((a, b) => numbers.value(b.code) - numbers.value(a.code))
    const parts = row.slice(0, most).map(({ code, key }) =>
      fill(data.signed ? data.words.part_signed : data.words.part, { key: data.keys[key], value: data.signed ? numbers.written(code) : numbers.percent(code) }))
    if (row.length > most) parts.push(fill(data.words.others, { count: row.length - most }))
    const words = parts.length ? data.words.row : data.words.blind
    return fill(words, { query: data.queries[query], head: data.names[map], parts: parts.join(", ") })
  }

  readOut({ chosen, numbers, data }) {
    const line = this.part("readout"), shown = this.look ?? {}
    const query = shown.query ?? (shown.key === undefined ? chosen.query : undefined)
    if (query === undefined || query === null || query >= numbers.queries) return line.replaceChildren(shown.key === undefined ? "" : data.keys[shown.key])
    const map = shown.map ?? chosen.map
    if (shown.key === undefined) return line.replaceChildren(this.sentence(map, query, 3))
    const code = numbers.code(map, query, shown.key)
    line.replaceChildren(`${data.names[map]}  `, bold(data.queries[query], "query"), " → ", bold(data.keys[shown.key], "key"), "  ", bold(numbers.written(code)))
  }

  // ---- heads, and the table ----

  fillHeads() {
    const { data, muted } = this
    const several = data.names.length > 1 && data.layers === 1
    const chips = several ? data.names.map((name, map) => this.chip(name, map)) : []
    if (muted.size) chips.push(this.everyHead())
    this.part("heads").replaceChildren(...chips)
  }

  chip(name, map) {
    const chip = Object.assign(document.createElement("button"), { type: "button", textContent: name, title: this.data.words.chip })
    chip.dataset.map = map
    chip.style.setProperty("--head", this.data.heads[map % this.data.heads.length])
    chip.setAttribute("aria-pressed", String(!this.muted.has(map)))
    chip.onclick = (event) => (event.shiftKey ? this.solo(map) : this.toggle(map))
    chip.ondblclick = () => this.solo(map)
    chip.onkeydown = ({ key }) => void (key.toLowerCase() === "s" && this.solo(map)) // not false, which would stop Tab
    chip.onpointerenter = () => this.point({ map, query: channel.chosen.query ?? undefined }, this)
    chip.onpointerleave = () => this.point(null, this)
    return chip
  }

  everyHead() {
    const chip = Object.assign(document.createElement("button"), { type: "button", className: "all", textContent: this.data.words.all })
    chip.onclick = () => this.show(new Set())
    return chip
  }

  toggle(map) {
    const muted = new Set(this.muted)
    muted.delete(map) || muted.add(map)
    this.show(muted.size === this.data.names.length ? new Set() : muted, map)
  }

  solo(map) {
    this.show(new Set(this.data.names.map((_, one) => one).filter((one) => one !== map)), map)
  }

  show(muted, focused) {
    this.muted = muted
    this.look = null
    this.fillHeads()
    this.part("heads").querySelector(`[data-map="${focused ?? 0}"]`)?.focus({ preventScroll: true })
    this.draw()
  }

  // The chosen map as a table; of a large one only the chosen row.
  fillTable() {
    const place = this.part("scroll")
    if (!this.root.querySelector("details").open || !this.numbers) return
    const { chosen, numbers, data } = this.scene(this.maps)
    const rows = Math.max(numbers.queries, numbers.keys) <= MOST_IN_TABLE ? data.queries.map((_, n) => n) : [chosen.query ?? 0]
    const table = document.createElement("table")
    table.append(node("caption", fill(data.words.caption, { head: data.names[chosen.map], step: data.step })))
    const head = table.createTHead().insertRow()
    head.append(node("th", ""), ...data.keys.map((key) => scoped("col", key)))
    const body = table.createTBody()
    for (const query of rows) {
      const cells = Array.from(numbers.row(chosen.map, query), (code) => node("td", numbers.written(code)))
      body.insertRow().append(scoped("row", data.queries[query]), ...cells)
    }
    place.replaceChildren(table)
  }
}

const MOST_IN_TABLE = 48

const look = (at) => (at ? [at.query ?? "", at.key ?? "", at.map ?? ""].join() : "")
const same = (a, b) => look(a) === look(b)
const fill = (words, values) => words.replace(/\{(\w+)\}/g, (_, name) => values[name])
const node = (tag, text) => Object.assign(document.createElement(tag), { textContent: text })
const scoped = (scope, text) => Object.assign(node("th", text), { scope })
const bold = (text, role = "") => Object.assign(node("bdi", text), { className: role })
