import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { connect, type Socket } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { infer, json, temporaryFolder } from '../_infer.ts'
import { prepare, serve } from '../_serve.ts'
import { fakeServer, streamWords } from '../_server.ts'

const certificateIn = (dataDir: string): string => join(dataDir, 'https', 'certificate.pem')
const serverFile = (dataDir: string) => {
  const path = join(dataDir, 'server.json')
  return { path, content: JSON.parse(readFileSync(path, 'utf8')) as { url: string; pid: number; certificate?: string } }
}

test('--https serves HTTPS, and commands accept only the certificate of that server', async () => {
  const { url: upstream } = await fakeServer((_, response) => streamWords(response, ['from ', 'afar']))
  const dataDir = prepare(upstream)
  const server = await serve(dataDir, ['--https'])
  expect(server.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/)
  expect(server.stdout()).toContain(`certificate ${certificateIn(dataDir)}\n`)
  const run = (...args: string[]) => infer([...args, '--data-dir', dataDir], { input: 'Hi' })
  expect(await run('chat')).toEqual({ exitCode: 0, stdout: 'from afar\n', stderr: '' })
  const doctor = json(await run('doctor', '--json')) as { findings: { name: string; level: string; detail: string }[] }
  expect(doctor.findings.find(({ name }) => name === 'address')?.detail).toContain(server.url)

  const { path, content } = serverFile(dataDir)
  const elsewhere = prepare()
  const other = await serve(elsewhere, ['--https'])
  expect(new X509Certificate(content.certificate!).fingerprint256).not.toBe(
    new X509Certificate(serverFile(elsewhere).content.certificate!).fingerprint256,
  )
  // Another server now listens on the address, with its own certificate.
  writeFileSync(path, JSON.stringify({ ...content, url: other.url }))
  const refused = await run('status')
  expect(refused.exitCode).not.toBe(0)
  expect(refused.stderr).toContain(`The server ${other.url} cannot be reached`)
  // Without a certificate in the file the usual checks apply, which a self-signed certificate does not pass.
  writeFileSync(path, JSON.stringify({ ...content, certificate: undefined }))
  expect((await run('status')).stderr).toContain('cannot be reached (DEPTH_ZERO_SELF_SIGNED_CERT)')
})

test('file URLs of an HTTPS server begin with https, and commands read them', async () => {
  const dataDir = temporaryFolder()
  writeFileSync(join(dataDir, 'infer.yaml'), 'listen: 127.0.0.1:0\nlimits: {min_free_disk: 1MiB, ballast: 1MiB}\n')
  await serve(dataDir, ['--https'])
  const out = join(dataDir, 'fox.png')
  const made = await infer(['run', 'demo/text-to-image', 'a fox', '--out', out, '--json', '--data-dir', dataDir])
  expect([made.exitCode, made.stderr]).toEqual([0, expect.any(String)])
  expect(readFileSync(out).subarray(1, 4).toString()).toBe('PNG')
  expect(made.stdout).toMatch(/"https:\/\/127\.0\.0\.1:\d+\/[^"]+"/)
})

test('SIGHUP reloads the certificate, and commands accept the new one', async () => {
  const folders = [temporaryFolder(), temporaryFolder()]
  for (const folder of folders) {
    writeFileSync(join(folder, 'infer.yaml'), readFileSync(join(prepare(), 'infer.yaml')))
    const maker = await serve(folder, ['--https'])
    maker.child.kill('SIGTERM')
    expect(await maker.ends()).toBe(0)
  }
  const dataDir = prepare()
  const files = ['certificate.pem', 'key.pem'].map(name => join(dataDir, name))
  const use = (folder: string) => {
    for (const file of files) copyFileSync(join(folder, 'https', file.slice(dataDir.length + 1)), file)
  }
  use(folders[0]!)
  const server = await serve(dataDir, ['--cert', files[0]!, '--key', files[1]!])
  expect(server.stdout()).not.toContain('certificate ')
  expect((await infer(['status', '--json', '--data-dir', dataDir])).exitCode).toBe(0)
  use(folders[1]!)
  server.child.kill('SIGHUP')
  await expect
    .poll(() => serverFile(dataDir).content.certificate)
    .toBe(readFileSync(certificateIn(folders[1]!), 'utf8'))
  expect((await infer(['status', '--json', '--data-dir', dataDir])).exitCode).toBe(0)
  const seen = request(`${server.url}/livez`, { ca: readFileSync(certificateIn(folders[1]!)) }).end()
  const [answer] = (await once(seen, 'response')) as [{ statusCode: number; resume(): void }]
  answer.resume()
  expect(answer.statusCode).toBe(200)

  writeFileSync(files[0]!, 'nothing')
  server.child.kill('SIGHUP')
  await server.until(() => server.stderr().includes('contains no certificate'))
  expect((await infer(['status', '--json', '--data-dir', dataDir])).exitCode).toBe(0)
})

test.each([
  [['--cert', 'c.pem'], 64, '--cert and --key belong together'],
  [['--https', '--key', 'k.pem'], 64, '--cert and --key belong together'],
  [['--cert', '/nowhere/c.pem', '--key', '/nowhere/k.pem'], 74, 'The certificate /nowhere/c.pem cannot be read'],
  [['--listen', '127.0.0.1:6000'], 65, 'Choose another port'],
])('%j exits with %i', async (args, exitCode, message) => {
  const ended = await infer(['serve', '--data-dir', prepare(), ...args])
  expect([ended.exitCode, ended.stderr]).toEqual([exitCode, expect.stringContaining(message)])
})

test('--open opens the console signed in, and reports when there is no browser', async () => {
  const folder = temporaryFolder()
  const without = await serve(prepare(), ['--open'], { PATH: folder })
  await without.until(() => without.stderr().includes(`Open ${without.url} yourself`))
  expect(without.stderr()).toContain('No browser was opened, because xdg-open is not installed.')

  const opened = join(folder, 'opened')
  writeFileSync(join(folder, 'xdg-open'), `#!/bin/sh\necho "$1" > ${opened}.new\n/bin/mv ${opened}.new ${opened}\n`)
  chmodSync(join(folder, 'xdg-open'), 0o755)
  const server = await serve(prepare(), ['--open'], { PATH: folder })
  await expect
    .poll(() => {
      try {
        return readFileSync(opened, 'utf8')
      } catch {
        return undefined
      }
    })
    .toMatch(new RegExp(`^${server.url}/console/sign-in#code=[\\w-]{43}\n$`))

  writeFileSync(join(folder, 'xdg-open'), '#!/bin/sh\nexit 3\n')
  const failing = await serve(prepare(), ['--open'], { PATH: folder })
  await failing.until(() => failing.stderr().includes('xdg-open ended with 3'))
  expect((await fetch(`${failing.url}/readyz`)).status).toBe(200)
})

const isReached = Object.values(networkInterfaces()).some(all =>
  all?.some(one => !one.internal && one.family === 'IPv4'),
)

test('--qr reports when only this machine reaches the server', async () => {
  const server = await serve(prepare(), ['--qr'])
  await server.until(() => server.stderr().includes('so there is no QR code'))
  expect(server.stdout()).not.toContain('▄')
})

test.runIf(isReached)('--qr prints an address that other machines reach, and those addresses are listed', async () => {
  const server = await serve(prepare(), ['--qr', '--listen', '0.0.0.0:0'])
  await server.until(() => /^http.*\/docs$/m.test(server.stdout()))
  const [, listed] = /^address (http:\/\/[\d.]+:\d+)$/m.exec(server.stdout())!
  expect(server.stdout()).toContain('▄')
  expect(server.stdout()).toMatch(new RegExp(`^${listed!.replaceAll('.', '\\.')}/docs$`, 'm'))
  expect((await fetch(`${listed}/readyz`)).status).toBe(200)
})

const queueLimit = Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8'))

test.runIf(queueLimit >= 1024)('the kernel queues 700 connections while the server is busy', async () => {
  const server = await serve(prepare())
  server.child.kill('SIGSTOP')
  const port = Number(new URL(server.url).port)
  const sockets: Socket[] = []
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
  })
  await Promise.all(
    Array.from({ length: 700 }, () => {
      const socket = connect(port, '127.0.0.1')
      sockets.push(socket)
      return once(socket, 'connect')
    }),
  )
  server.child.kill('SIGCONT')
  expect((await fetch(`${server.url}/readyz`)).status).toBe(200)
})
