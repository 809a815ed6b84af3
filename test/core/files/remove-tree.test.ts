import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { removeTree } from '../../../core/files/remove-tree.ts'

let directory: string
let tree: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'infer-tree-'))
  tree = join(directory, 'tree')
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

test('a tree is removed whatever its modes, and the targets of its links are kept', async () => {
  const outside = join(directory, 'outside')
  mkdirSync(outside, { mode: 0o755 })
  writeFileSync(join(outside, 'kept'), 'x')
  mkdirSync(join(tree, 'deep', 'deeper'), { recursive: true })
  writeFileSync(join(tree, 'deep', 'deeper', 'x'), 'x', { mode: 0o000 })
  symlinkSync(outside, join(tree, 'deep', 'folder'))
  symlinkSync(join(outside, 'kept'), join(tree, 'file'))
  symlinkSync('/nowhere', join(tree, 'broken'))
  writeFileSync(Buffer.concat([Buffer.from(`${tree}/`), Buffer.from([0xff, 0xfe])]), 'x')
  chmodSync(join(tree, 'deep'), 0o000)
  await removeTree(tree)
  expect(existsSync(tree)).toBe(false)
  expect(existsSync(join(outside, 'kept'))).toBe(true)
  expect(statSync(outside).mode & 0o777).toBe(0o755)
})

test('a link is removed and not followed', async () => {
  mkdirSync(tree)
  symlinkSync(tree, join(directory, 'link'))
  await removeTree(join(directory, 'link'))
  expect(existsSync(tree)).toBe(true)
  await removeTree(join(directory, 'link'))
})

test('a deeply nested tree is refused and uses no file handles', async () => {
  mkdirSync(join(tree, 'x/'.repeat(70)), { recursive: true })
  await expect(removeTree(tree)).rejects.toThrow('nested more than 64 levels deep')
})
