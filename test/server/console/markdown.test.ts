import fc from 'fast-check'
import { createElement, type FunctionComponent } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import { blocksOf, noBlocks } from '../../../server/console/app/components/markdown/blocks.ts'
import { mathExtensions } from '../../../server/console/app/components/markdown/math-tokens.ts'
import { piecesOf } from '../../../server/console/app/components/markdown/pieces.ts'
import { safeLink, withoutEntities } from '../../../server/console/app/components/markdown/safe.ts'
import { spokenPieces } from '../../../server/console/app/components/markdown/spoken.ts'

/** Its types are those of the browser, which tests are not checked with. */
const component = '../../../server/console/app/components/markdown/markdown.tsx'
const { default: Markdown } = (await import(component)) as {
  default: FunctionComponent<{ text: string; growing: boolean }>
}
const html = (text: string): string => renderToStaticMarkup(createElement(Markdown, { text, growing: false }))
const kinds = (text: string): string[] => blocksOf(text).blocks.map(({ token }) => token.type)
const words = fc.array(
  fc.constantFrom(
    '# a\n',
    'word ',
    '\n',
    '\n\n',
    '- b\n',
    '  - c\n',
    '> d\n',
    '```\n',
    '| e | f |\n|--|--|\n',
    '*',
    '<b>',
    '1. g\n',
    '===\n',
    '\r\n',
    '    h\n',
    '$$\n',
    '$i$ ',
    '\\[',
    '\\] ',
  ),
  { maxLength: 30 },
)

test('pieces are the text, and blocks of a text that grows begin where those of the whole text begin', () => {
  fc.assert(
    fc.property(words, parts => {
      const text = parts.join('')
      expect(
        piecesOf(text)
          .map(piece => piece.text)
          .join(''),
      ).toBe(text)
      let grown = noBlocks
      for (let at = 1; at <= parts.length; at++) grown = blocksOf(parts.slice(0, at).join(''), grown)
      expect(grown.blocks.map(({ token }) => token.raw)).toEqual(blocksOf(text).blocks.map(({ token }) => token.raw))
    }),
    { numRuns: 300 },
  )
})

test('a text that grows keeps its finished blocks', () => {
  const before = blocksOf('# One\n\nTwo\n\nThr')
  const after = blocksOf('# One\n\nTwo\n\nThree\n\n- four', before)
  expect(after.blocks.slice(0, 2).every((block, at) => block === before.blocks[at])).toBe(true)
  expect(after.blocks.map(({ token }) => token.type)).toEqual(['heading', 'paragraph', 'paragraph', 'list'])
})

test.each([
  ['https://example.com/a b', 'https://example.com/a%20b'],
  ['mailto:a@b.c', 'mailto:a@b.c'],
  ['javascript:alert(1)', undefined],
  [' JaVaScRiPt:alert(1)', undefined],
  ['java\nscript:alert(1)', undefined],
  ['data:text/html,x', undefined],
  ['/console/models', undefined],
  ['//example.com', undefined],
  ['vbscript:x', undefined],
])('the link %j leads to %j', (href, safe) => expect(safeLink(href)).toBe(safe))

test.each([
  ['a &amp; b &lt;i&gt; &#8212; &#x41;', 'a & b <i> — A'],
  ['&unknown; &constructor; &#0; &#9999999;', '&unknown; &constructor; &#0; &#9999999;'],
])('%j is shown as %j', (text, shown) => expect(withoutEntities(text)).toBe(shown))

test.each([
  ['<script>alert(1)</script>', '<script'],
  ['a <img src=x onerror=alert(1)> b', '<img'],
  ['[x](javascript:alert(1)) <javascript:alert(1)>', '<a'],
  ['![x](https://example.com/x.png)', '<img'],
  ['<a href="javascript:alert(1)">x</a>', '<a'],
  ['[x](data:text/html;base64,AAAA)', '<a'],
  ['<iframe src="https://example.com">', '<iframe'],
  ['<style>*{}</style>\n\n<!-- open', '<style'],
])('%s makes no such element', (text, element) => {
  const made = html(text)
  // A picture of another server is a link to it.
  expect(made.replaceAll(/<a href="https:[^>]*>/g, '')).not.toContain(element)
})

test('what models write is shown: a table, nested lists, tasks, a quote, code, an own picture', () => {
  const text =
    '| a | b |\n|:-:|--|\n| 1 | **2** |\n\n3. c\n   - d\n\n- [x] e\n\n> f\n\n```js\ng\n```\n\n![h](/files/i)\n'
  const made = html(text)
  for (const part of [
    '<td class="border-line border-b px-2 py-1 text-center">1</td>',
    '<strong',
    '<ol start="3"',
    '<blockquote',
    'checked=""',
    'aria-label="Code: js"',
    '<img src="/files/i" alt="h"',
  ])
    expect(made).toContain(part)
})

test('where the next formula begins is looked for in the paragraph, not in all of the text', () => {
  const next = mathExtensions.startBlock[0]!
  expect(next('a\n$$b$$\n\nc')).toBe(2)
  expect(next('a\n   \\[b\\]')).toBe(2)
  const long = `a\n\n${'b\n\n'.repeat(200_000)}$$c$$`
  const since = process.cpuUsage()
  for (let time = 0; time < 1_000; time++) expect(next(long)).toBeUndefined()
  expect(process.cpuUsage(since).user / 1_000).toBeLessThan(1_500)
})

test.each<[name: string, text: string, milliseconds: number]>([
  ['a fence that is not closed', `\`\`\`js\n${'let a = 1\n'.repeat(20_000)}`, 500],
  ['1,000 nested lists', Array.from({ length: 1_000 }, (_, depth) => `${'  '.repeat(depth)}- a\n`).join(''), 1_000],
  ['1,000 quotes in each other', `${'> '.repeat(1_000)}a`, 200],
  ['1,000 lists on one line', `${'- '.repeat(1_000)}a`, 200],
  ['a paragraph of 200 kB', 'word '.repeat(40_000), 200],
  ['200 kB of marks', '_a*b['.repeat(34_000), 200],
  ['a line of 20,000 cells', '|a'.repeat(20_000), 200],
  ['signs of formulas', `${'$a \\( $$ '.repeat(600)}\n\n`.repeat(2), 1_000],
  ['20,000 brackets in paragraphs', `${'['.repeat(2_000)}\n\n`.repeat(10), 1_000],
])('%s is read in time', (_, text, milliseconds) => {
  const began = process.cpuUsage()
  const made = html(text)
  // Of the processor, and more than enough: what grew with the square of the length took half a minute.
  expect(process.cpuUsage(began).user / 1_000).toBeLessThan(3 * milliseconds)
  expect(made.length).toBeGreaterThan(10)
})

const formulas = (text: string): string[] =>
  [...html(text).matchAll(/<code class="bg-raised[^>]*>([^<]*)<\/code>/g)].map(([, tex]) => tex!)

test.each<[text: string, formulas: string[]]>([
  ['The area is $\\pi r^2$, and $x$ is $-2$.', ['\\pi r^2', 'x', '-2']],
  ['$2 + 3$ and $10 - 3$, $5$ of them', ['2 + 3', '10 - 3', '5']],
  ['so \\(a_b * c_d\\) and \\[ E = mc^2 \\] here', ['a_b * c_d', 'E = mc^2']],
  [
    'Before\n$$\n\\begin{aligned}\n- a &= b\n\\end{aligned}\n$$\nafter',
    ['\\begin{aligned}\n- a &amp;= b\n\\end{aligned}'],
  ],
  ['in a line $$x = 1$$ too', ['x = 1']],
  ['| a |\n|--|\n| $x^2$ |\n\n- $y$\n- **$z$**', ['x^2', 'y', 'z']],
  ['It costs $5 and $10.', []],
  ['$5, $10 or US$20 ($7–$9), 5$ and 10$', []],
  ['pay $5 and 10$ later', []],
  ['$HOME/$USER and $PATH', []],
  ['a \\$5 and \\$6', []],
  ['costs $3, run `echo $x`', ['echo $x']],
  ['$$\n\na\n\n$$', []],
  ['$ x $ and $$', []],
  ['```\n$x$\n```', []],
])('the formulas of %j are %j', (text, expected) => {
  expect(formulas(text)).toEqual(expected)
})

test('a paragraph that is too long is shown as it is, and those around it are read', () => {
  expect(kinds(`# a\n\n${'*b* '.repeat(3_000)}\n\n- c\n`)).toEqual(['heading', 'text', 'list'])
})

test('what is read aloud are the words, in pieces that end with a sentence', () => {
  const text =
    '# Title\n\n- **one** `two`\n- [three](https://example.com/)\n\n```js\nlet a\n```\n\n| a | b |\n|--|--|\n| 1 | 2 |\n\nThe &amp; end. <b>'
  expect(spokenPieces(text)).toEqual(['Title. one two. three. a, b. 1, 2. The & end.'])
  expect(spokenPieces('```js\nlet a\n```')).toEqual([])
  const pieces = spokenPieces(`${'A sentence of some words. '.repeat(100)}${'x'.repeat(1_500)}`)
  expect(pieces.every(({ length }) => length <= 1_000)).toBe(true)
  expect(pieces[0]).toMatch(/words\.$/)
  expect(pieces.join('').replaceAll(/[^x]/g, '')).toHaveLength(1_500)
})
