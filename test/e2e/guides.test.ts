import { expect, test } from 'vitest'
import { writtenPages } from '../_blocks.ts'
import { say } from './_home.ts'
import { openPage } from './_page.ts'

const pages = writtenPages().filter(({ blocks }) => blocks.some(({ marks }) => marks.includes('test')))

test('README.md and the guides have blocks that can be run', () => {
  expect(pages.map(({ name }) => name)).toContain('README.md')
  expect(pages.length).toBeGreaterThan(5)
})

test('a block whose command fails is an error with the output of the block', async () => {
  await using page = await openPage()
  const block = { at: 'x.md:1', language: 'sh', marks: ['test'] }
  await page.run({ ...block, text: 'kept=value' })
  expect((await page.run({ ...block, text: 'echo "$kept"; infer --version' })).output).toMatch(/^value\n\d+\.\d+\.\d+/)
  const { skipped } = await page.run({ ...block, marks: ['test', 'no-such-program'], text: 'false' })
  expect(skipped).toBe('no-such-program is not installed')
  const failing = page.run({ ...block, text: 'echo before; infer nonsense | cat; echo after' })
  await expect(failing).rejects.toThrow(/^x\.md:1 failed with 64:\nbefore\n[^]*nonsense/)
})

test.each(pages)(
  '$name: its blocks work in their order, in a clean home',
  { timeout: 300_000 },
  async ({ name, blocks }) => {
    await using page = await openPage()
    let ran = 0
    for (const block of blocks) {
      const { skipped } = await page.run(block)
      if (skipped === undefined) ran++
      else if (block.marks.includes('test')) say(`${block.at} was not run: ${skipped}`)
    }
    say(`${name}: ${ran} blocks were run`)
    expect(ran).toBeGreaterThan(0)
  },
)
