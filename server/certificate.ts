import { createPrivateKey, X509Certificate } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { hostname, networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { Failure } from '../core/failure.ts'
import type { Config } from '../core/models/config.ts'
import { hostName } from './host.ts'

/** A private key and its certificate, with the chain behind it where there is one; both PEM. */
export interface KeyPair {
  key: string
  cert: string
}

/** Where the files of the key pair lie. */
export interface KeyPairFiles {
  key: string
  cert: string
}

/** A self-signed key pair that is to be made. */
export interface NewKeyPair {
  names: readonly string[]
  validDays: number
}

/** Days. Apple's systems trust no certificate that is valid for longer, even where a user has added it. */
const selfSignedDays = 825
/** A self-signed certificate that ends sooner is replaced at the next start. Milliseconds. */
const renewMs = 30 * 86_400_000

/** Where the self-signed key pair lies in a data directory. */
export const selfSignedFiles = (dataDir: string): KeyPairFiles => ({
  cert: join(dataDir, 'https', 'certificate.pem'),
  key: join(dataDir, 'https', 'key.pem'),
})

/**
 * The certificate of one server: that of the operator's files, or a self-signed one that the data directory keeps.
 * Throws Failure `invalid_value` that names the file and what is wrong with it.
 */
export function openCertificate(
  { dataDir, files }: { dataDir: string; files: KeyPairFiles | undefined },
  config: Config,
) {
  const kept = files ? readKeyPair(files) : keptKeyPair(dataDir)
  let current = kept?.cert
  return {
    /** What the server begins with: a key pair, or what to make one of. */
    source: kept ?? { names: ownNames(config), validDays: selfSignedDays },
    /** The server has begun with this pair; one that was made is kept. */
    opened(pair: KeyPair): void {
      if (!kept) keepKeyPair(dataDir, pair)
      current = pair.cert
    },
    /** The pair that the files hold now. */
    read(): KeyPair {
      const pair = readKeyPair(files ?? selfSignedFiles(dataDir))
      current = pair.cert
      return pair
    },
    get current(): string | undefined {
      return current
    },
  }
}

/** Reads a key pair of the operator. Throws Failure `invalid_value` that names the file and what is wrong with it. */
function readKeyPair(files: KeyPairFiles): KeyPair {
  const cert = pem(files.cert, 'certificate', /-----BEGIN (?:TRUSTED )?CERTIFICATE-----/)
  const key = pem(files.key, 'private key', /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----/)
  const certificate = parsed(files.cert, 'certificate', () => new X509Certificate(cert))
  const privateKey = parsed(files.key, 'private key', () => createPrivateKey(key))
  if (!certificate.checkPrivateKey(privateKey))
    throw new Failure(
      'invalid_value',
      `The private key ${files.key} does not belong to the certificate ${files.cert}. Give --cert and --key of one pair.`,
    )
  if (certificate.validToDate.getTime() <= Date.now())
    throw new Failure(
      'invalid_value',
      `The certificate ${files.cert} expired on ${certificate.validToDate.toISOString().slice(0, 10)}. Give --cert one that is valid.`,
    )
  return { cert, key }
}

/** The self-signed key pair that an earlier start kept; undefined when there is none that can be used for long enough. */
function keptKeyPair(dataDir: string): KeyPair | undefined {
  try {
    const pair = readKeyPair(selfSignedFiles(dataDir))
    return new X509Certificate(pair.cert).validToDate.getTime() > Date.now() + renewMs ? pair : undefined
  } catch {
    return undefined
  }
}

/** Keeps a self-signed key pair for the next start, readable for this user only. */
function keepKeyPair(dataDir: string, pair: KeyPair): void {
  const files = selfSignedFiles(dataDir)
  mkdirSync(join(dataDir, 'https'), { recursive: true, mode: 0o700 })
  // A crash between the two leaves a pair that does not match, which the next start replaces.
  for (const part of ['key', 'cert'] as const) {
    writeFileSync(`${files[part]}.new`, pair[part], { mode: 0o600 })
    renameSync(`${files[part]}.new`, files[part])
  }
}

/** The names and addresses under which clients may reach this server, for a self-signed certificate. */
function ownNames({ public_url, allowed_hosts, listen }: Config): string[] {
  const addresses = Object.values(networkInterfaces())
    .flatMap(all => all ?? [])
    .filter(({ internal, address }) => !internal && !address.startsWith('fe80:'))
    .map(({ address }) => address)
  const named = public_url ? hostName(new URL(public_url).host) : undefined
  const names = [
    'localhost',
    '127.0.0.1',
    '::1',
    hostname(),
    hostName(listen),
    named,
    ...allowed_hosts.map(hostName),
    ...addresses,
  ]
  return [...new Set(names.flatMap(name => (name && name !== '0.0.0.0' && name !== '::' ? [name] : [])))]
}

/** The text of a PEM file from its first block on, because some programs write a description before it. */
function pem(path: string, what: string, begin: RegExp): string {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    throw new Failure('invalid_value', `The ${what} ${path} cannot be read: ${(cause as Error).message}.`, { cause })
  }
  if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|Proc-Type: 4,ENCRYPTED/.test(text))
    throw new Failure(
      'invalid_value',
      `The private key ${path} is encrypted. Decrypt it first, for example with: openssl pkey -in ${path} -out key.pem`,
    )
  const at = text.search(begin)
  if (at < 0) throw new Failure('invalid_value', `The file ${path} holds no ${what} in PEM form.`)
  return text.slice(at)
}

function parsed<T>(path: string, what: string, read: () => T): T {
  try {
    return read()
  } catch (cause) {
    throw new Failure('invalid_value', `The ${what} ${path} cannot be read: ${(cause as Error).message}.`, { cause })
  }
}
