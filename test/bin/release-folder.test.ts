import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { emptyReleaseFolder } from '../../bin/release-folder.ts'

function setUp() {
  const folder = mkdtempSync(join(tmpdir(), 'infer-release-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

test('the folder is created, and an earlier release is removed from it', () => {
  const folder = join(setUp(), 'new')
  emptyReleaseFolder(folder)
  const names = [
    'infer-linux-x64',
    'infer-linux-x64.cdx.json',
    'infer_1.0~rc.1_amd64.deb',
    'Containerfile',
    'SHA256SUMS',
  ]
  for (const name of names) writeFileSync(join(folder, name), '')
  emptyReleaseFolder(folder)
  expect(readdirSync(folder)).toEqual([])
})

test('a folder with other files is refused and keeps them', () => {
  const folder = setUp()
  mkdirSync(join(folder, 'documents'))
  writeFileSync(join(folder, 'SHA256SUMS'), '')
  expect(() => emptyReleaseFolder(folder)).toThrow(/ has 'documents', which is not from a release\. Name another/)
  expect(readdirSync(folder)).toEqual(['SHA256SUMS', 'documents'])
})
