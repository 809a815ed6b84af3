import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { full } from '../_full.ts'

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
const has = (program: string): boolean => spawnSync(program, ['--version']).error === undefined
const missing = ['buildah', ...(full ? ['debootstrap'] : ['dpkg'])].filter(program => !has(program))
let reason =
  process.getuid?.() !== 0
    ? 'only root can make a base image'
    : missing.length > 0
      ? `${missing.join(' and ')} must be installed`
      : undefined

let folder: string
let container: string
const storage = () => ['--storage-driver', 'vfs', '--root', join(folder, 'images'), '--runroot', join(folder, 'run')]
const environment = () => ({ ...process.env, BUILDAH_ISOLATION: 'chroot', TMPDIR: folder })
const buildah = (...args: string[]): string =>
  execFileSync('buildah', [...storage(), ...args], { encoding: 'utf8', env: environment(), stdio: 'pipe' }).trim()

/** Debian 12 as its packages make it, in memory, because dpkg waits for the disk after each file. */
const debian = `
set -e
mkdir $1/base
mount -t tmpfs tmpfs $1/base
debootstrap --variant=minbase bookworm $1/base
tar -C $1/base --exclude=./var/cache/apt --exclude=./var/lib/apt/lists -cf $1/base.tar .`

/** The C library, and the programs that the build and the tests run, of this machine: made in a second, without a network. */
const onlyNeeded = `
set -e
mkdir -p $1/base/etc $1/base/usr/bin $1/base/usr/sbin $1/base/usr/lib $1/base/usr/lib64
mkdir -m 1777 $1/base/tmp
for name in bin sbin lib lib64; do ln -s usr/$name $1/base/$name; done
touch $1/base/etc/passwd $1/base/etc/group
cp -L --parents $(dpkg -L libc6 libgcc-s1 libstdc++6 | grep '/lib.*[.]so[^/]*$') $1/base
for program in sh cat install groupadd useradd mount setpriv unshare; do
  file=$(command -v $program)
  cp -L --parents $file $(ldd $file | grep -o '/[^ ]*[.]so[^ ]*') $1/base
done
tar -C $1/base -cf $1/base.tar .`

beforeAll(() => {
  if (!existsSync('build/infer')) throw new Error('build/infer is missing. Run: npm run pack')
  folder = mkdtempSync(join(tmpdir(), 'infer-container-'))
  if (reason) return
  // No registry is needed.
  const makeBase = full ? debian : onlyNeeded
  const made = spawnSync('unshare', ['--mount', 'sh', '-c', makeBase, 'sh', folder], { encoding: 'utf8' })
  if (made.status !== 0) {
    const last = `${made.stdout}${made.stderr}`.trim().split('\n').at(-1)
    if (!full) throw new Error(`The base image could not be made: ${last}`)
    reason = `debootstrap could not make a base image: ${last}`
    return
  }
  const empty = buildah('from', 'scratch')
  buildah('add', '--quiet', empty, join(folder, 'base.tar'), '/')
  buildah('commit', '--quiet', '--rm', empty, 'localhost/base')
  rmSync(join(folder, 'base.tar'))

  const context = join(folder, 'context')
  mkdirSync(context)
  execFileSync('cp', ['--reflink=auto', resolve('build/infer'), join(context, 'infer-linux-x64')])
  const build = ['build', '--quiet', '--isolation', 'chroot', '--build-arg', 'BASE=localhost/base']
  buildah(...build, '--tag', 'localhost/infer', '--file', resolve('bin/Containerfile'), context)
  container = buildah('from', 'localhost/infer')
}, 400_000)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const inside = (...command: string[]) => ['run', '--isolation', 'chroot', container, '--', ...command]

test('the image starts infer as a user other than root, with its data in one volume', context => {
  context.skip(reason !== undefined, reason)
  const { config } = (
    JSON.parse(buildah('inspect', '--type', 'image', 'localhost/infer')) as { OCIv1: { config: object } }
  ).OCIv1
  expect(config).toMatchObject({
    User: '8787:8787',
    Entrypoint: ['/usr/local/bin/infer'],
    Cmd: ['serve', '--listen', '0.0.0.0:8787'],
    Volumes: { '/var/lib/infer': {} },
    ExposedPorts: { '8787/tcp': {} },
  })
})

test('infer runs in the container, and the doctor finds no fault', async context => {
  context.skip(reason !== undefined, reason)
  await expect.poll(() => buildah(...inside('infer', '--version'))).toBe(version)
  const { stdout } = spawnSync('buildah', [...storage(), ...inside('infer', 'doctor', '--json')], {
    encoding: 'utf8',
    env: environment(),
  })
  const { findings } = JSON.parse(stdout) as { findings: { name: string; state: string; detail: string }[] }
  // The network is shared with this machine, where another server may use the default address.
  expect(findings.filter(({ name, state }) => state === 'broken' && name !== 'address')).toEqual([])
})

test('the server starts, and the built-in engine answers a chat', async context => {
  context.skip(reason !== undefined, reason)
  const child = spawn('buildah', [...storage(), ...inside('infer', 'serve', '--listen', '127.0.0.1:0')], {
    env: environment(),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let url: string | undefined
  try {
    for await (const line of createInterface(child.stdout)) {
      url = /^ready (\S+)$/.exec(line)?.[1]
      if (url) break
    }
    child.stdout.resume()
    expect((await fetch(`${url}/livez`)).status).toBe(200)
    let token = ''
    // On a busy machine buildah loses what a short command prints.
    await expect.poll(() => (token = buildah(...inside('cat', '/var/lib/infer/root-token')))).not.toBe('')
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'infer/tiny-chat', messages: [{ role: 'user', content: 'Hello' }] }),
    })
    expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining('"choices"')])
  } finally {
    let about = ''
    await expect.poll(() => (about = buildah(...inside('cat', '/var/lib/infer/server.json')))).not.toBe('')
    const { pid } = JSON.parse(about) as { pid: number }
    const end = once(child, 'exit')
    process.kill(pid, 'SIGTERM')
    expect((await end)[0]).toBe(0)
  }
})
