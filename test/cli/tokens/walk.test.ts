import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type SearchResult, secretStatusOf, walkForSecrets } from '../../../cli/tokens/scan.ts'
import { mintSecret } from '../../../core/accounts/secret.ts'
import type { VerifiableToken } from '../../../core/store/store.ts'
import { temporaryFolder } from '../_infer.ts'

const { secret } = mintSecret()

async function walk(...paths: string[]): Promise<{ met: SearchResult[]; files: string[] }> {
  const met: SearchResult[] = []
  const files: string[] = []
  for await (const one of walkForSecrets(paths, path => files.push(path))) met.push(one)
  return { met, files }
}

test('every file below a folder is read, .git and binary files included', async () => {
  const folder = temporaryFolder()
  mkdirSync(join(folder, '.git/hooks'), { recursive: true })
  writeFileSync(join(folder, '.git/config'), `url = https://x:${secret}@host`)
  writeFileSync(join(folder, 'image.png'), Buffer.concat([Buffer.from([0, 255, 10, 0]), Buffer.from(secret)]))
  writeFileSync(join(folder, 'clean.txt'), 'nothing here')
  writeFileSync(join(folder, 'empty'), '')
  const { met, files } = await walk(folder)
  expect(files).toHaveLength(4)
  expect(met.map(one => `${one.path}:${'found' in one && one.found.line}`).sort((a, b) => a.localeCompare(b))).toEqual([
    join(folder, '.git/config:1'),
    join(folder, 'image.png:2'),
  ])
})

test('links are followed only when named', async () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'real'), secret)
  mkdirSync(join(folder, 'inner'))
  symlinkSync(join(folder, 'real'), join(folder, 'inner/link'))
  symlinkSync(folder, join(folder, 'inner/loop'))
  expect((await walk(join(folder, 'inner'))).files).toEqual([])
  expect((await walk(join(folder, 'inner/link'))).met).toHaveLength(1)
})

test('unreadable files are reported, and the rest is searched', async () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'real'), secret)
  const { met } = await walk(join(folder, 'missing'), join(folder, 'real'))
  expect(met).toMatchObject([{ unreadable: expect.stringContaining('ENOENT') as string }, { found: { secret } }])
})

test.skipIf(process.getuid?.() === 0)('a file without permission is reported', async () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'closed'), secret)
  chmodSync(join(folder, 'closed'), 0)
  expect((await walk(folder)).met).toMatchObject([{ unreadable: expect.stringContaining('EACCES') as string }])
})

const token = { status: 'active', organizationStatus: 'active', expiresAt: null } as VerifiableToken
test.each([
  ['live', token],
  ['unknown', undefined],
  ['revoked', { ...token, status: 'revoked' }],
  ['disabled', { ...token, status: 'disabled' }],
  ['disabled', { ...token, organizationStatus: 'suspended' }],
  ['expired', { ...token, expiresAt: 999 }],
  ['live', { ...token, expiresAt: 1001 }],
] as const)('a secret is %s', (worth, row) => {
  expect(secretStatusOf(row, 1000)).toBe(worth)
})
