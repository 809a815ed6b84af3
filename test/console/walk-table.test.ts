import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const read = (name: string) => readFileSync(join(import.meta.dirname, name), 'utf8')

test('the table of walks has six of each role, and each names a test that is there', () => {
  const rows = [...read('README.md').matchAll(/^\| (\w+) \| [^|]+ \| `(.+?)`: (.+) \|$/gm)].map(
    ([, role, file, name]) => ({ role: role!, file: file!, name: name! }),
  )
  const counts = Object.groupBy(rows, ({ role }) => role)
  expect(Object.fromEntries(Object.entries(counts).map(([role, all]) => [role, all!.length]))).toEqual({
    chat: 6,
    creator: 6,
    builder: 6,
    operator: 6,
    administrator: 6,
  })
  expect(rows.filter(({ file, name }) => !read(file).includes(name))).toEqual([])
})
