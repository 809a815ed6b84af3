import { X509Certificate } from 'node:crypto'
import { chmodSync, copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FoundServer, serverUnreachable } from '../../../../cli/client/find-server.ts'
import { openLog } from '../../../../core/log.ts'
import { Config } from '../../../../core/models/config.ts'
import { hubUnreachable } from '../../../../core/models/hub/requests.ts'
import { type KeyPairFiles, selfSignedFiles } from '../../../../server/http/connection/certificate.ts'
import { openListener } from '../../../../server/http/connection/listen.ts'
import { openServer } from '../../../../server/server.ts'

const folder = mkdtempSync(join(tmpdir(), 'infer-certificate-'))
const log = openLog('error')
const open = (dataDir: string, files?: KeyPairFiles, config: object = {}) =>
  openServer({ config: Config.parse({ listen: '127.0.0.1:0', ...config }), log, https: { dataDir, files } })

/** Starts a server, sends a request, stops it; returns the certificate that it presented. */
async function served(dataDir: string, files?: KeyPairFiles, config?: object): Promise<X509Certificate> {
  const server = await open(dataDir, files, config)
  await ask(server.url, server.certificate!)
  await server.drain(0)
  return new X509Certificate(server.certificate!)
}

/** A request that trusts only this certificate, and checks the name. */
function ask(url: string, ca: string): Promise<string> {
  return new Promise((resolve, reject) => {
    request(`${url}/livez`, { ca, agent: false }, answer => resolve(text(answer)))
      .on('error', reject)
      .end()
  })
}

/** A self-signed pair in files, valid for this many days from now. */
async function pairFor(name: string, validDays: number): Promise<KeyPairFiles> {
  const https = { names: [name, '127.0.0.1'], validDays }
  const { server, keyPair } = await openListener({ handler: () => {}, at: '127.0.0.1:0', https, configure: () => {} })
  await new Promise(closed => server.close(closed))
  const files = { cert: join(folder, `${name}.pem`), key: join(folder, `${name}.key`) }
  writeFileSync(files.cert, keyPair!.cert)
  writeFileSync(files.key, keyPair!.key)
  return files
}

let own: KeyPairFiles
let other: KeyPairFiles
let expired: KeyPairFiles
let ending: KeyPairFiles
beforeAll(async () => {
  ;[own, other, expired, ending] = await Promise.all([
    pairFor('own.example', 400),
    pairFor('other.example', 400),
    pairFor('expired.example', -1),
    pairFor('ending.example', 10),
  ])
})
afterAll(() => rmSync(folder, { recursive: true }))

test('a self-signed certificate has the names and addresses of the server, and only this user can read it', async () => {
  const dataDir = join(folder, 'names')
  const first = await served(dataDir, undefined, {
    allowed_hosts: ['gpu.lan'],
    public_url: 'https://infer.example/base',
  })
  for (const name of ['localhost', 'gpu.lan', 'infer.example']) expect(first.checkHost(name)).toBe(name)
  expect(first.checkHost(hostname())).toBeUndefined()
  for (const address of ['127.0.0.1', '::1']) expect(first.checkIP(address)).toBe(address)
  expect(first.subject).toBe('CN=infer\nO=infer')
  expect(first.validToDate.getTime() - Date.now()).toBeGreaterThan(800 * 86_400_000)
  const files = selfSignedFiles(dataDir)
  for (const file of [files.cert, files.key]) expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(statSync(join(files.key, '..')).mode & 0o777).toBe(0o700)

  const again = await served(dataDir)
  expect(again.fingerprint256).toBe(first.fingerprint256)
})

test('a self-signed certificate is replaced when a host name or the listen address is added, and kept when one is removed', async () => {
  const dataDir = join(folder, 'added')
  const none = await served(dataDir)
  const one = await served(dataDir, undefined, { allowed_hosts: ['gpu.lan:8443'] })
  expect(one.fingerprint256).not.toBe(none.fingerprint256)
  expect(one.checkHost('gpu.lan')).toBe('gpu.lan')
  const two = await served(dataDir, undefined, { allowed_hosts: ['gpu.lan'], public_url: 'https://[fd00::7]/' })
  expect(two.fingerprint256).not.toBe(one.fingerprint256)
  expect(two.checkIP('fd00::7')).toBe('fd00::7')
  expect((await served(dataDir)).fingerprint256).toBe(two.fingerprint256)
  const listening = await served(dataDir, undefined, { listen: '127.0.0.2:0' })
  expect(listening.fingerprint256).not.toBe(two.fingerprint256)
  expect(listening.checkIP('127.0.0.2')).toBe('127.0.0.2')
})

test('a self-signed certificate has only names that the server accepts', async () => {
  const certificate = await served(join(folder, 'accepted'), undefined, { listen: 'localhost:0' })
  const names = certificate.subjectAltName!.split(', ').filter(name => name.startsWith('DNS:'))
  expect(names).toEqual(['DNS:localhost'])
})

test.each<[string, (files: KeyPairFiles) => void]>([
  ['whose key is gone', ({ key }) => rmSync(key)],
  [
    'that is damaged',
    ({ cert }) => writeFileSync(cert, '-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----\n'),
  ],
  ['whose key belongs to another', ({ key }) => copyFileSync(other.key, key)],
  [
    'that has ended',
    ({ cert, key }) => {
      copyFileSync(expired.cert, cert)
      copyFileSync(expired.key, key)
    },
  ],
  [
    'that ends within a month',
    ({ cert, key }) => {
      copyFileSync(ending.cert, cert)
      copyFileSync(ending.key, key)
    },
  ],
])('a kept certificate %s is replaced', async (what, spoil) => {
  const dataDir = join(folder, what.replaceAll(' ', '-'))
  const first = await served(dataDir)
  spoil(selfSignedFiles(dataDir))
  const second = await served(dataDir)
  expect(second.fingerprint256).not.toBe(first.fingerprint256)
  expect((await served(dataDir)).fingerprint256).toBe(second.fingerprint256)
})

test('a certificate of the operator is used, whatever precedes it in its file, and nothing is written', async () => {
  const dataDir = join(folder, 'own')
  const described = join(folder, 'described.pem')
  writeFileSync(described, `Bag Attributes\n    friendlyName: own\n${readFileSync(own.cert, 'utf8')}`)
  const shown = await served(dataDir, { cert: described, key: own.key })
  expect(shown.checkHost('own.example')).toBe('own.example')
  expect(() => statSync(dataDir)).toThrow('ENOENT')
})

test('new connections get a replaced certificate, and an invalid one changes nothing', async () => {
  const files = { cert: join(folder, 'live.pem'), key: join(folder, 'live.key') }
  const replace = (by: KeyPairFiles) => {
    copyFileSync(by.cert, files.cert)
    copyFileSync(by.key, files.key)
  }
  replace(own)
  const server = await open(join(folder, 'live'), files)
  expect(server.certificate).toBe(readFileSync(own.cert, 'utf8'))
  replace(other)
  server.reloadCertificate()
  expect(server.certificate).toBe(readFileSync(other.cert, 'utf8'))
  expect(await ask(server.url, readFileSync(other.cert, 'utf8'))).toBe('ok\n')
  await expect(ask(server.url, readFileSync(own.cert, 'utf8'))).rejects.toThrow()

  writeFileSync(files.cert, 'nothing')
  expect(() => server.reloadCertificate()).toThrow('contains no certificate')
  expect(server.certificate).toBe(readFileSync(other.cert, 'utf8'))
  expect(await ask(server.url, readFileSync(other.cert, 'utf8'))).toBe('ok\n')
  await server.drain(0)
})

const file = (name: string, content: string): string => {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}
test.each<[string, () => KeyPairFiles, RegExp]>([
  [
    'that is not there',
    () => ({ ...own, cert: '/nowhere/c.pem' }),
    /certificate \/nowhere\/c\.pem cannot be read: ENOENT/,
  ],
  ['whose key is not there', () => ({ ...own, key: '/nowhere/k.pem' }), /private key \/nowhere\/k\.pem cannot be read/],
  ['that is a key', () => ({ ...own, cert: own.key }), /own\.example\.key contains no certificate in PEM format/],
  [
    'whose key is a certificate',
    () => ({ ...own, key: own.cert }),
    /own\.example\.pem contains no private key in PEM format/,
  ],
  [
    'that is damaged',
    () => ({ ...own, cert: file('bad', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n') }),
    /certificate .*\/bad cannot be read/,
  ],
  [
    'whose key is encrypted',
    () => ({ ...own, key: file('locked', '-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n') }),
    /locked is encrypted\. Decrypt it first/,
  ],
  ['whose key is of another', () => ({ ...own, key: other.key }), /does not belong to the certificate/],
  ['that has ended', () => expired, /expired on \d{4}-\d\d-\d\d/],
])('a certificate %s is refused with the file and the reason', async (_, files, message) => {
  await expect(open(join(folder, 'refused'), files())).rejects.toMatchObject({
    code: 'invalid_value',
    message: expect.stringMatching(message),
  })
})

test.skipIf(process.getuid?.() === 0)('an unreadable key file is refused', async () => {
  const key = file('secret', '')
  chmodSync(key, 0)
  await expect(open(join(folder, 'refused'), { ...own, key })).rejects.toThrow('EACCES')
})

test('clients that do not know the authority say how to make it known', async () => {
  const dataDir = mkdtempSync(join(folder, 'unknown-'))
  const server = await open(dataDir)
  const url = `${server.url}/m.gguf`
  const thrown = await fetch(url).catch((cause: unknown) => cause)
  const download = hubUnreachable(new URL(url), thrown)
  expect(download).toMatchObject({ code: 'invalid_value', retryable: false })
  expect(download.message).toMatch(
    /^The certificate of 127\.0\.0\.1:\d+ is signed by .* NODE_USE_SYSTEM_CA=1, .* NODE_EXTRA_CA_CERTS/,
  )
  const remote = { url: server.url, token: 'x', isRemote: true } as FoundServer
  const { cause } = thrown as Error
  expect(serverUnreachable(remote, dataDir, cause).message).toMatch(/NODE_USE_SYSTEM_CA=1.*https\/certificate\.pem/)
  await server.drain(0)
})
