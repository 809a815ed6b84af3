import { describe, expect, test } from 'vitest'
import { openOwnerFiles, type SlotFile } from '../../../gpu/requests/owner-files.ts'
import { commonBytes, promptMarks } from '../../../gpu/requests/prompt-marks.ts'

/** Saved conversations are found by hashes, as if the prompt were compared with each. */
const bodyOf = (text: string) => JSON.stringify({ messages: [{ role: 'user', content: text }] })
const sizes = [100, 400, 900, 2_000, 7_000, 30_000]
const texts = ['a', 'b'].flatMap(topic => sizes.map(size => topic.repeat(size)))
/** Some continue others: they begin with the whole text of those. */
const saved: SlotFile[] = [...texts, ...texts.map(text => `${text} and more`)].map((text, at) => {
  const { length, end, powers } = promptMarks(bodyOf(text), 'key')!
  return { name: `file${at}`, bytes: 1, marks: { length, end, powers } }
})
const prompts = [...texts, ...texts.map(text => `${text} and more of it`), 'c'.repeat(5_000), 'a'.repeat(600_000)]
const marksOf = (text: string, lengths: Iterable<number>) => promptMarks(bodyOf(text), 'key', lengths)!

describe.each(prompts.map(text => [`${text.slice(0, 1)}…${text.slice(-2)}, ${text.length} characters`, text]))(
  'a prompt of %s',
  (_, text) => {
    const files = openOwnerFiles(saved)
    const prompt = marksOf(text, files.lengths())

    test('finds a file that has as much of it as any', () => {
      const most = Math.max(...saved.map(({ marks }) => commonBytes(prompt, marks)))
      const found = files.longest(prompt)
      expect(found?.common ?? 0).toBe(most)
      if (found) expect(commonBytes(prompt, found.file.marks)).toBe(most)
    })

    test('finds all files with whose whole prompts it begins', () => {
      const within = saved.filter(({ marks }) => marks.length > 0 && prompt.at.get(marks.length) === marks.end)
      expect(files.within(prompt).toSorted()).toEqual(within.map(({ name }) => name).toSorted())
    })
  },
)

test('a removed file is found no more, and one of the same name replaces another', () => {
  const files = openOwnerFiles(saved)
  const prompt = marksOf(texts[5]!, files.lengths())
  const { file } = files.longest(prompt)!
  files.remove(file.name)
  expect(files.longest(prompt)?.file.name).not.toBe(file.name)
  files.add(file)
  files.add({ ...file, marks: saved[0]!.marks })
  expect(files.longest(prompt)?.file.name).not.toBe(file.name)
  for (const { name } of saved) files.remove(name)
  expect([files.longest(prompt), files.within(prompt), files.lengths()]).toEqual([undefined, [], []])
})
