/** Target of a character: a state, a grammar rule for the text after it, or 'nowhere' if it is not allowed. */
export type ToolTarget = number | { rule: string } | 'nowhere'

export interface ToolState {
  steps: ReadonlyMap<string, ToolTarget>
  /** Target of all other characters. */
  otherwise: ToolTarget
  mayEnd: boolean
}

/** Free text that must not contain, or not begin with, certain words. State 0 is the first. */
export type ToolAutomaton = readonly ToolState[]

export const step = (automaton: ToolAutomaton, state: number, character: string): ToolTarget => {
  const { steps, otherwise } = automaton[state]!
  return steps.get(character) ?? otherwise
}

/**
 * Accepts any text until the marker is complete, and continues with `found`. State n means that the first n characters
 * of the marker were read, by the construction of Knuth, Morris and Pratt. `offset` is the number that state 0 gets.
 */
export function untilMarker(marker: string, found: ToolTarget, mayEnd: boolean, offset = 0): ToolState[] {
  return Array.from(marker, (_, seen) => {
    const steps = new Map<string, ToolTarget>()
    for (const character of new Set(marker)) {
      const reached = overlap(marker.slice(0, seen) + character, marker)
      if (reached > 0) steps.set(character, reached === marker.length ? found : offset + reached)
    }
    return { steps, otherwise: offset, mayEnd }
  })
}

/** Returns the length of the longest suffix of the text that is a prefix of the marker. */
function overlap(text: string, marker: string): number {
  let length = Math.min(text.length, marker.length)
  while (!text.endsWith(marker.slice(0, length))) length--
  return length
}

interface Node {
  /** Whether white space may be repeated here. */
  loose: boolean
  children: Map<string, Node | 'nowhere'>
}

/**
 * Accepts any text that does not begin with one of the openings. An opening is a sequence of words with optional white
 * space before each; no opening is a prefix of another. Other text continues as `rest` defines, whose state
 * numbers must begin after those of this automaton: it gets the first free number.
 */
export function notBeginningWith(
  openings: readonly (readonly string[])[],
  rest: (offset: number) => ToolState[],
): { automaton: ToolAutomaton; rest: number } {
  const root: Node = { loose: true, children: new Map() }
  for (const words of openings) {
    let node = root
    words.forEach((word, at) => {
      for (const [place, character] of Array.from(word).entries()) {
        if (at === words.length - 1 && place === word.length - 1) node.children.set(character, 'nowhere')
        else node = child(node, character)
      }
      node.loose = true
    })
  }
  const nodes: Node[] = [root]
  for (const node of nodes) for (const next of node.children.values()) if (next !== 'nowhere') nodes.push(next)
  const numbers = new Map(nodes.map((node, at) => [node, at]))
  const tail = rest(nodes.length)
  const states = nodes.map((node, at): ToolState => {
    const steps = new Map<string, ToolTarget>(tail[0]!.steps)
    if (node.loose) for (const space of whiteSpace) steps.set(space, at)
    for (const [character, next] of node.children)
      steps.set(character, next === 'nowhere' ? 'nowhere' : numbers.get(next)!)
    return { steps, otherwise: tail[0]!.otherwise, mayEnd: true }
  })
  return { automaton: [...states, ...tail], rest: nodes.length }
}

function child(node: Node, character: string): Node {
  const known = node.children.get(character)
  if (known !== undefined && known !== 'nowhere') return known
  const made: Node = { loose: false, children: new Map() }
  node.children.set(character, made)
  return made
}

const whiteSpace = ' \t\r\n'

/** Returns the automaton as rules of a GBNF grammar, `name-0` first. */
export function rulesOf(automaton: ToolAutomaton, name: string): string[] {
  return automaton.map(({ steps, otherwise, mayEnd }, at) => {
    const ways = new Map<string, { target: ToolTarget; characters: string }>()
    for (const [character, target] of steps) {
      const way = ways.get(wordFor(target, name)) ?? { target, characters: '' }
      ways.set(wordFor(target, name), { target, characters: way.characters + character })
    }
    const all = Array.from(steps.keys()).join('')
    const parts = [...ways.values()]
      .filter(({ target }) => target !== 'nowhere')
      .map(({ target, characters }) => `[${classOf(characters)}] ${wordFor(target, name)}`)
    if (otherwise !== 'nowhere') parts.push(`[^${classOf(all)}] ${wordFor(otherwise, name)}`)
    if (mayEnd) parts.push('""')
    return `${name}-${at} ::= ${parts.join(' | ')}`
  })
}

const wordFor = (target: ToolTarget, name: string): string =>
  typeof target === 'number' ? `${name}-${target}` : target === 'nowhere' ? '' : target.rule

/** Writes characters for a GBNF class, by number where a character may have a special meaning. */
const classOf = (characters: string): string =>
  Array.from(characters, character =>
    /[A-Za-z0-9]/.test(character)
      ? character
      : `\\U${character.codePointAt(0)!.toString(16).toUpperCase().padStart(8, '0')}`,
  ).join('')
