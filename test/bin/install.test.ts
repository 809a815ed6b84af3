import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { install, installFolder } from '../../bin/install.ts'

test.each([
  [[], undefined],
  [['--install'], '/home/me/.local/bin'],
  [['--install', '/opt/bin'], '/opt/bin'],
  [['--install', 'here'], resolve('here')],
])('%j installs to %s', (args, folder) => expect(installFolder(args, '/home/me')).toBe(folder))

test.each([[['--instal']], [['--install', 'a', 'b']], [['--install', '--force']]])('%j is refused', args =>
  expect(() => installFolder(args, '/home/me')).toThrow('npm run pack -- --install [folder]'),
)

test('the executable is copied, replaces an older one, and the message says where it is', () => {
  const folder = mkdtempSync(join(tmpdir(), 'infer-install-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const executable = join(folder, 'built')
  const bin = join(folder, 'new/bin')
  const content = Buffer.alloc(200_000, 'x')
  writeFileSync(executable, content)
  expect(install(executable, bin, `/usr/bin:${bin}`)).toBe(`Installed ${bin}/infer. Start it with: infer serve`)
  content.fill('y')
  writeFileSync(executable, content)
  expect(install(executable, bin, '/usr/bin')).toContain(
    `${bin} is not on your PATH. Add it with: export PATH="${bin}:$PATH"`,
  )
  expect(readFileSync(join(bin, 'infer'))).toEqual(content)
  expect(statSync(join(bin, 'infer')).mode & 0o777).toBe(0o755)
  expect(readdirSync(bin)).toEqual(['infer'])
})
