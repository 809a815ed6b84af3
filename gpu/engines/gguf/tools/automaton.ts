import { written } from '../grammar/grammar.ts'
import { heldBack } from '../stop.ts'

/** Target of a character: a state, a grammar rule for the text after it, or 'nowhere' if it is not allowed. */
export type ToolTarget = number | { rule: string } | 'nowhere'

export interface ToolState {
  steps: ReadonlyMap<string, ToolTarget>
  /** State after all other characters. */
  otherwise: number
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
      const text = marker.slice(0, seen) + character
      const reached = heldBack(text, [marker])
      if (text === marker) steps.set(character, found)
      else if (reached > 0) steps.set(character, offset + reached)
    }
    return { steps, otherwise: offset, mayEnd }
  })
}

interface Node {
  /** Whether white space may be repeated here. */
  loose: boolean
  children: Map<string, Node>
}

/**
 * Accepts any text that does not begin with one of the openings. An opening is a sequence of words with optional white
 * space before each; no opening is a prefix of another. Other text continues as `rest` defines, whose state
 * numbers must begin after those of this automaton: it gets the first free number.
 */
export function notBeginningWith(openings: readonly (readonly string[])[], rest: (offset: number) => ToolState[]) {
  const newNode = (): Node => ({ loose: false, children: new Map() })
  const root = newNode()
  for (const words of openings) {
    let node = root
    for (const word of words) {
      node.loose = true
      for (const character of word) {
        const next = node.children.get(character) ?? newNode()
        node.children.set(character, next)
        node = next
      }
    }
  }
  // A node without children completes an opening. Iteration over an array includes entries that are added meanwhile.
  const nodes = [root]
  for (const node of nodes) nodes.push(...[...node.children.values()].filter(({ children }) => children.size > 0))
  const numbers = new Map(nodes.map((node, at) => [node, at]))
  const tail = rest(nodes.length)
  const states = nodes.map((node, at): ToolState => {
    const steps = new Map<string, ToolTarget>(tail[0]!.steps)
    if (node.loose) for (const space of whiteSpace) steps.set(space, at)
    for (const [character, next] of node.children) steps.set(character, numbers.get(next) ?? 'nowhere')
    return { steps, otherwise: tail[0]!.otherwise, mayEnd: true }
  })
  return { automaton: [...states, ...tail], rest: nodes.length }
}

const whiteSpace = ' \t\r\n'

/** Returns the automaton as rules of a GBNF grammar, `name-0` first. */
export function rulesOf(automaton: ToolAutomaton, name: string): string[] {
  const ruleFor = (target: ToolTarget) =>
    typeof target === 'number' ? `${name}-${target}` : target === 'nowhere' ? '' : target.rule
  const classOf = (characters: Iterable<string>) => written([...characters].join(''))
  return automaton.map(({ steps, otherwise, mayEnd }, at) => {
    const ways = Map.groupBy(steps, ([, target]) => ruleFor(target))
    ways.delete('')
    const parts = Array.from(ways, ([rule, entries]) => `[${classOf(entries.map(([character]) => character))}] ${rule}`)
    parts.push(`[^${classOf(steps.keys())}] ${ruleFor(otherwise)}`)
    if (mayEnd) parts.push('""')
    return `${name}-${at} ::= ${parts.join(' | ')}`
  })
}
