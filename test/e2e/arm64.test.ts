import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { targets } from '../../bin/target.ts'

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
const wanted = process.env.INFER_TEST_RELEASE === '1'
const [emulator, , libraries] = targets.arm64.emulator

/** How the kernel recognizes an arm64 executable: the bytes of its header, and the mask of those that count. */
const magic = String.raw`\x7f\x45\x4c\x46\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00`
const mask = String.raw`\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff`

/**
 * Runs its arguments where the kernel starts arm64 executables, including children of infer, under the emulator. Only
 * these processes see both: the libraries lie in an overlay of the machine, the emulator is registered in a user
 * namespace. The shell replaces itself by exec, so that a signal reaches infer. Only $folder is written to permanently.
 */
const emulated = `
set -e
layer=$folder/layer
mkdir -p $layer
mount -t tmpfs tmpfs $layer
mkdir $layer/upper $layer/work $layer/root
mount -t overlay overlay -o lowerdir=/,upperdir=$layer/upper,workdir=$layer/work $layer/root
mount --rbind /dev $layer/root/dev
mount --rbind /proc $layer/root/proc
mount --bind $folder $layer/root$folder
mkdir -p $layer/root/etc/qemu-binfmt
ln -s ${libraries} $layer/root/etc/qemu-binfmt/aarch64
export layer
exec unshare --user --map-root-user --mount sh -c '
  set -e
  mount -t binfmt_misc binfmt_misc $layer/root/proc/sys/fs/binfmt_misc
  echo ":arm64:M::$magic:$mask:$emulator:F" > $layer/root/proc/sys/fs/binfmt_misc/register
  exec chroot $layer/root "$@"' sh "$@"`

// Packs for arm64 and runs it under an emulator, which takes 3 minutes on 2 cores; INFER_TEST_RELEASE=1, as root, turns
// it on.
describe.skipIf(!wanted)('the executable for arm64', () => {
  let folder: string
  let executable: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'infer-arm64-'))
    const release = join(folder, 'release')
    execFileSync(process.execPath, ['bin/release.ts', '--arch', 'arm64', '--output', release, '--compression', '0'], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    executable = join(release, 'infer-linux-arm64')
  }, 600_000)
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  const command = (...args: string[]): [string, string[]] => [
    'unshare',
    ['--mount', 'sh', '-c', emulated, 'sh', executable, ...args],
  ]
  const environment = () => {
    const at = execFileSync('which', [emulator!], { encoding: 'utf8' }).trim()
    return { HOME: folder, PATH: process.env.PATH!, folder, magic, mask, emulator: at }
  }
  const run = (...args: string[]) => spawnSync(...command(...args), { encoding: 'utf8', env: environment() })

  test('prints its version, and no warning about its code cache', () => {
    expect(run('--version')).toMatchObject({ stdout: `${version}\n`, stderr: '', status: 0 })
  })

  test('the doctor finds no fault: images are decoded, llama.cpp computes', () => {
    const { findings } = JSON.parse(run('doctor', '--json').stdout) as {
      findings: { name: string; state: string; detail: string }[]
    }
    // The network is shared with this machine, where another server may use the default address.
    expect(findings.filter(({ name, state }) => state === 'broken' && name !== 'address')).toEqual([])
    for (const name of ['images', 'backend cpu'])
      expect(findings.find(finding => finding.name === name)).toMatchObject({ state: 'fine' })
  }, 300_000)

  test('the server becomes healthy, answers a chat, and exits on SIGTERM', async () => {
    const child = spawn(...command('serve', '--listen', '127.0.0.1:0'), {
      env: environment(),
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const end = once(child, 'exit')
    try {
      let url: string | undefined
      for await (const line of createInterface(child.stdout)) {
        url = /^ready (\S+)$/.exec(line)?.[1]
        if (url) break
      }
      child.stdout.resume()
      expect((await fetch(`${url}/livez`)).status).toBe(200)
      const token = readFileSync(join(folder, '.local/share/infer/root-token'), 'utf8').trim()
      const chat = () =>
        fetch(`${url}/v1/chat/completions`, {
          method: 'POST',
          headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
          body: JSON.stringify({ model: 'infer/tiny-chat', messages: [{ role: 'user', content: 'Hello' }] }),
        })
      let answer = await chat()
      // Each waits half a minute for the engine, which starts more slowly under the emulator.
      for (let attempt = 1; answer.status === 503 && attempt < 8; attempt++) answer = await chat()
      expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('"choices"')])
      child.kill('SIGTERM')
      expect((await end)[0]).toBe(0)
    } finally {
      child.kill('SIGKILL')
      await end
    }
  }, 400_000)

  test('kernels with 64 KiB pages, as on arm64 servers, can load it', () => {
    const headers = execFileSync('readelf', ['--program-headers', '--wide', executable], { encoding: 'utf8' })
    const loads = [...headers.matchAll(/^ +LOAD +0x(\w+) 0x(\w+)/gm)]
    expect(loads.length).toBeGreaterThan(2)
    for (const [line, offset, address] of loads)
      expect(Number.parseInt(address!, 16) % 65536, line).toBe(Number.parseInt(offset!, 16) % 65536)
  })

  test('its Debian package has the architecture arm64', () => {
    const file = readdirSync(join(folder, 'release')).find(name => name.endsWith('.deb'))!
    const fields = execFileSync('dpkg-deb', ['--field', join(folder, 'release', file), 'Architecture'], {
      encoding: 'utf8',
    })
    expect([file, fields]).toEqual([`infer_${version}_arm64.deb`, 'arm64\n'])
  })
})
