import { expect, test } from 'vitest'
import { parseTemplate, ReferenceFault, templateParts } from '../../../core/workflows/references.ts'
import { referenceCases } from './_reference-cases.ts'

test.each(referenceCases)('$text is read, or refused by its first fault', ({ text, references, code }) => {
  if (code !== undefined) return expect(() => parseTemplate(text)).toThrow(expect.objectContaining({ code }))
  const found = parseTemplate(text).filter(part => typeof part === 'object')
  expect(found.map(({ root, path }) => [root, ...path])).toEqual(references)
})

test('the search goes on after a fault, and ends at the 2,001st reference', () => {
  const contents = [...templateParts('${input.x ${} '.repeat(3_000))].map(({ content }) => content)
  expect(contents).toHaveLength(2_001)
  expect(contents.every(content => content instanceof ReferenceFault)).toBe(true)
})

test('a megabyte of openings without an end is searched in time linear to its length', () => {
  const started = performance.now()
  for (const text of ['${'.repeat(500_000), '${"'.repeat(330_000)])
    expect([...templateParts(text)].length).toBeGreaterThan(0)
  // A search that reads to the end of the text for each opening takes minutes.
  expect(performance.now() - started).toBeLessThan(10_000)
})
