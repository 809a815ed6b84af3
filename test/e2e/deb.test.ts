import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Layer, openLayer } from './_layer.ts'

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
const withoutDpkg = spawnSync('dpkg-deb', ['--version']).status === 0 ? undefined : 'dpkg-deb is not installed'
const opened = withoutDpkg ?? (await openLayer())
const reason = typeof opened === 'string' ? opened : undefined

let folder: string
beforeAll(() => {
  if (!existsSync('build/infer')) throw new Error('build/infer is missing. Run: npm run pack')
  folder = mkdtempSync(join(tmpdir(), 'infer-release-'))
  if (withoutDpkg) return
  // Compressed fast and therefore large: only the content is tested.
  execFileSync(
    process.execPath,
    ['bin/release.ts', '--arch', 'x64', '--output', join(folder, 'release'), '--compression', '0'],
    { stdio: 'pipe' },
  )
})
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  if (typeof opened !== 'string') await opened[Symbol.asyncDispose]()
})

const debFile = `infer_${version}_amd64.deb`

test.skipIf(withoutDpkg)(
  'a release has the executable, its package, its bill of materials and matching checksums',
  () => {
    const release = join(folder, 'release')
    expect(readdirSync(release).sort()).toEqual(
      ['Containerfile', 'SHA256SUMS', debFile, 'infer-linux-x64', 'infer-linux-x64.cdx.json'].sort(),
    )
    execFileSync('sha256sum', ['--check', '--strict', '--quiet', 'SHA256SUMS'], { cwd: release })
    expect(readFileSync('build/infer').equals(readFileSync(join(release, 'infer-linux-x64')))).toBe(true)
  },
)

test.skipIf(withoutDpkg)('the package belongs to root and contains only the executable, its unit and texts', () => {
  const list = execFileSync('dpkg-deb', ['--contents', join(folder, 'release', debFile)], { encoding: 'utf8' })
  const files = list
    .trim()
    .split('\n')
    .map(line => line.split(/\s+/))
  expect(files.filter(([, owner]) => owner !== 'root/root')).toEqual([])
  expect(files.filter(([mode]) => !mode!.startsWith('d')).map(([mode, , , , , path]) => `${mode} ${path}`)).toEqual([
    '-rwxr-xr-x ./usr/bin/infer',
    '-rw-r--r-- ./usr/lib/systemd/system/infer.service',
    '-rw-r--r-- ./usr/share/bash-completion/completions/infer',
    '-rw-r--r-- ./usr/share/doc/infer/CHANGELOG.md.gz',
    '-rw-r--r-- ./usr/share/doc/infer/copyright',
    '-rw-r--r-- ./usr/share/fish/vendor_completions.d/infer.fish',
    '-rw-r--r-- ./usr/share/zsh/vendor-completions/_infer',
  ])
})

describe.skipIf(reason)(`on this machine${reason ? ` (skipped: ${reason})` : ''}`, () => {
  const layer = opened as Layer
  const succeeds = (...argv: string[]): string => {
    const { code, out, err } = layer.run(argv)
    expect(code, `${argv.join(' ')}: ${out}${err}`).toBe(0)
    return out
  }
  /** How the unit starts the server: the environment, the command, the user. */
  function unit() {
    const text = succeeds('cat', '/usr/lib/systemd/system/infer.service')
    const all = (key: string) => [...text.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value]) => value!)
    return {
      user: all('User')[0]!,
      command: all('ExecStart')[0]!.split(' '),
      environment: Object.fromEntries(all('Environment').map(pair => pair.split('=') as [string, string])),
    }
  }
  const asService = (...command: string[]): string[] => {
    const { user } = unit()
    return ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--init-groups', ...command]
  }
  const isThere = (path: string) => layer.run(['test', '-e', path]).code === 0

  test('dpkg -i installs the executable, the user, the data directory and the unit, and starts nothing', () => {
    layer.copy(join(folder, 'release', debFile), '/var/infer.deb')
    expect(succeeds('dpkg', '-i', '/var/infer.deb')).toContain('systemctl enable --now infer')
    expect(succeeds('infer', '--version')).toBe(`${version}\n`)
    expect(succeeds('getent', 'passwd', 'infer')).toMatch(
      /^infer:x:\d+:\d+:.*:\/var\/lib\/infer:\/usr\/sbin\/nologin$/m,
    )
    expect(succeeds('stat', '--format=%a %U %G', '/var/lib/infer')).toBe('700 infer infer\n')
    expect(unit()).toMatchObject({
      user: 'infer',
      command: ['/usr/bin/infer', 'serve'],
      environment: { INFER_DATA_DIR: '/var/lib/infer' },
    })
    expect(isThere('/var/lib/infer/infer.db')).toBe(false)
    if (layer.run(['sh', '-c', 'command -v systemd-analyze']).code === 0)
      succeeds('systemd-analyze', 'verify', '--man=no', '/usr/lib/systemd/system/infer.service')
  })

  test('infer doctor finds no fault for the user of the service', () => {
    const { out, err } = layer.run(asService('infer', 'doctor', '--json'), unit().environment)
    expect(err).toBe('')
    const { findings } = JSON.parse(out) as { findings: { name: string; state: string; detail: string }[] }
    // Another server on this machine may use the default address.
    expect(findings.filter(({ name, state }) => state === 'broken' && name !== 'address')).toEqual([])
  })

  test("the server runs with the unit's environment, command and user", async () => {
    const { command, environment } = unit()
    const child = layer.start(asService(...command, '--listen', '127.0.0.1:0'), environment)
    try {
      let url: string | undefined
      for await (const line of createInterface(child.stdout!)) {
        url = /^ready (\S+)$/.exec(line)?.[1]
        if (url) break
      }
      expect((await fetch(`${url}/livez`)).status).toBe(200)
    } finally {
      child.stdout!.resume()
      child.stderr!.resume()
      const end = once(child, 'exit')
      child.kill('SIGTERM')
      expect((await end)[0]).toBe(0)
    }
    expect(isThere('/var/lib/infer/infer.db')).toBe(true)
  })

  test('an upgrade and a removal keep the user and the data', () => {
    expect(succeeds('dpkg', '-i', '/var/infer.deb')).not.toContain('systemctl enable')
    succeeds('dpkg', '-r', 'infer')
    expect([isThere('/usr/bin/infer'), isThere('/var/lib/infer/infer.db')]).toEqual([false, true])
    succeeds('getent', 'passwd', 'infer')
  })

  test('a purge leaves only the data, owned by root; after a new installation the service owns it again', () => {
    succeeds('dpkg', '-i', '/var/infer.deb')
    if (layer.run(['sh', '-c', 'command -v systemctl']).code === 0) {
      succeeds('systemctl', 'enable', 'infer.service')
      expect(isThere('/etc/systemd/system/multi-user.target.wants/infer.service')).toBe(true)
    }
    expect(succeeds('dpkg', '--purge', 'infer')).toContain('The data of infer stays in /var/lib/infer.')
    expect(layer.run(['getent', 'passwd', 'infer']).code).not.toBe(0)
    expect(layer.run(['getent', 'group', 'infer']).code).not.toBe(0)
    expect(succeeds('find', '/var/lib/infer', '!', '-user', 'root')).toBe('')

    // Files that dpkg, useradd and the caches of other programs write for themselves.
    const bookkeeping = /^\/var\/(lib\/dpkg|cache|log)\/|^\/etc\/(passwd|group|shadow|gshadow|subuid|subgid)-$/
    const left = layer.changes().filter(path => path !== '/var/infer.deb' && !bookkeeping.test(path))
    expect(left.filter(path => !path.startsWith('/var/lib/infer'))).toEqual([])
    expect(left).toContain('/var/lib/infer/infer.db')
    expect(left.filter(path => path.startsWith('/var/lib/infer/cache'))).toEqual([])

    succeeds('dpkg', '-i', '/var/infer.deb')
    expect(succeeds('find', '/var/lib/infer', '!', '-user', 'infer')).toBe('')
  })
})
