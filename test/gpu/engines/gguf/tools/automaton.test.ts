import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  notBeginningWith,
  rulesOf,
  step,
  type ToolAutomaton,
  type ToolTarget,
  untilMarker,
} from '../../../../../gpu/engines/gguf/tools/automaton.ts'
import { reader } from './_llama.ts'

const found = { rule: 'found' }

/** The state after a text, or the target that it reached earlier. */
function run(automaton: ToolAutomaton, text: string): ToolTarget {
  let state: ToolTarget = 0
  for (const character of text) {
    state = step(automaton, state, character)
    if (typeof state !== 'number') return state
  }
  return state
}

describe('text until a marker', () => {
  const markers = ['</think>', 'aab', 'aaaa', 'abcabd', '[TOOL_CALLS]', 'x']
  test.each(markers)('%s is found where it is first complete, and nowhere else', marker => {
    const automaton = untilMarker(marker, found, true)
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...Array.from(marker), 'z', marker.slice(0, 2))), parts => {
        const text = parts.join('')
        expect(run(automaton, text) === found).toBe(text.includes(marker))
      }),
    )
  })
})

const openings = [
  ['{', '"name"', ':', '"add"'],
  ['{', '"name"', ':', '"sum"'],
  ['{', '"type"', ':', '"call"'],
]
const guarded = notBeginningWith(openings, offset => untilMarker('<!>', found, true, offset))

describe('text that does not begin as a call', () => {
  test.each<[string, string, boolean]>([
    ['words', 'hello', true],
    ['nothing', '', true],
    ['other JSON', '{"a": 1}', true],
    ['another name', '{"name": "adder"}', true],
    ['an incomplete name', ' { "name" : "ad', true],
    ['an opening', '{"name":"add"', false],
    ['an opening with white space', '\n {\t"name" :\n"sum" , ', false],
    ['another opening', '{"type":"call"', false],
    ['an opening after words', 'So: {"name":"add"', true],
  ])('%s', (_what, text, allowed) => expect(run(guarded.automaton, text) !== 'nowhere').toBe(allowed))

  test('a marker is found after it, and at the very beginning', () => {
    for (const text of ['<!>', '{<!>', '{"name": "<!>', 'well <!>']) expect(run(guarded.automaton, text)).toBe(found)
  })
})

describe('as a grammar of llama.cpp', () => {
  test('text until a marker, and the text that must follow it', async () => {
    const open = untilMarker('</t>', found, true)
    const allows = await reader(['root ::= t-0', 'found ::= "!"', ...rulesOf(open, 't')].join('\n'))
    for (const text of ['', 'a\nb', '<', '</t', '</t>!', '<</t>!', 'ä€😀"\\]^-</t>!'])
      expect([text, allows(text)]).toEqual([text, true])
    for (const text of ['</t>', '</t>?', 'a</t>!!', 'a</t>!</t>!']) expect([text, allows(text)]).toEqual([text, false])
    const closed = await reader(
      ['root ::= t-0', 'found ::= "!"', ...rulesOf(untilMarker('</t>', found, false), 't')].join('\n'),
    )
    expect([closed('a'), closed('a</t>!')]).toEqual([false, true])
  })

  test('text that does not begin as a call: the grammar matches what the automaton accepts', async () => {
    const allows = await reader(['root ::= s-0', 'found ::= "!"', ...rulesOf(guarded.automaton, 's')].join('\n'))
    fc.assert(
      fc.property(
        fc.array(
          fc.constantFrom('{', '"name"', '"type"', ':', '"add"', '"sum"', '"call"', ' ', '\n', 'x', '"', '<', '!'),
        ),
        parts => {
          const text = parts.join('')
          const target = run(guarded.automaton, text)
          if (target !== found) expect(allows(text)).toBe(target !== 'nowhere')
        },
      ),
    )
  })
})
