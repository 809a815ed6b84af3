import { createPrivateKey, X509Certificate } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { Failure } from '../../../core/failure.ts'
import type { Config } from '../../../core/models/config.ts'
import { hostName } from './host.ts'

/** A private key and its certificate, with its chain if there is one; both PEM. */
export interface KeyPair {
  key: string
  cert: string
}

/** Paths of the files of a key pair. */
export interface KeyPairFiles {
  key: string
  cert: string
}

/** What a self-signed key pair is generated from. */
export interface NewKeyPair {
  names: readonly string[]
  validDays: number
}

/** Days. Apple's systems trust no certificate that is valid for longer, even if a user has added it. */
const selfSignedDays = 825
/** Milliseconds. A self-signed certificate that expires sooner is replaced at the next start. */
const renewMs = 30 * 86_400_000

/** Returns the paths of the self-signed key pair in a data directory. */
export const selfSignedFiles = (dataDir: string): KeyPairFiles => ({
  cert: join(dataDir, 'https', 'certificate.pem'),
  key: join(dataDir, 'https', 'key.pem'),
})

/**
 * Opens the certificate of the server: that in the operator's files, or a self-signed one that is stored in the data
 * directory. Throws Failure `invalid_value` that names the file and what is wrong with it.
 */
export function openCertificate(
  { dataDir, files }: { dataDir: string; files: KeyPairFiles | undefined },
  config: Config,
) {
  const stored = files ? readKeyPair(files) : storedKeyPair(dataDir, configuredNames(config))
  let current = stored?.cert
  return {
    /** What the server starts with: a key pair, or the options to generate one. */
    source: stored ?? { names: ownNames(config), validDays: selfSignedDays },
    /** Reports the key pair that the server started with; a generated one is stored. */
    opened(pair: KeyPair): void {
      if (!stored) storeKeyPair(dataDir, pair)
      current = pair.cert
    },
    /** Reads the key pair from the files again. */
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

/** Reads a key pair. Throws Failure `invalid_value` that names the file and what is wrong with it. */
function readKeyPair(files: KeyPairFiles): KeyPair {
  const cert = pem(files.cert, 'certificate', /-----BEGIN (?:TRUSTED )?CERTIFICATE-----/)
  const key = pem(files.key, 'private key', /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----/)
  const certificate = parsed(files.cert, 'certificate', () => new X509Certificate(cert))
  const privateKey = parsed(files.key, 'private key', () => createPrivateKey(key))
  if (!certificate.checkPrivateKey(privateKey))
    throw new Failure(
      'invalid_value',
      `The private key ${files.key} does not belong to the certificate ${files.cert}. Pass --cert and --key of one pair.`,
    )
  if (certificate.validToDate.getTime() <= Date.now())
    throw new Failure(
      'invalid_value',
      `The certificate ${files.cert} expired on ${certificate.validToDate.toISOString().slice(0, 10)}. Pass a valid one with --cert.`,
    )
  return { cert, key }
}

/**
 * Returns the self-signed key pair that an earlier start stored; undefined if there is none, it expires too soon, or it
 * lacks one of the names. Further names do not matter: a new certificate must be copied to every client again.
 */
function storedKeyPair(dataDir: string, names: readonly string[]): KeyPair | undefined {
  try {
    const pair = readKeyPair(selfSignedFiles(dataDir))
    const certificate = new X509Certificate(pair.cert)
    const hasName = (name: string) => (isIP(name) ? certificate.checkIP(name) : certificate.checkHost(name))
    return certificate.validToDate.getTime() > Date.now() + renewMs && names.every(hasName) ? pair : undefined
  } catch {
    return undefined
  }
}

/** Stores a self-signed key pair for the next start, readable for this user only. */
function storeKeyPair(dataDir: string, pair: KeyPair) {
  const files = selfSignedFiles(dataDir)
  mkdirSync(join(dataDir, 'https'), { recursive: true, mode: 0o700 })
  // A crash between the two writes leaves a pair that does not match; the next start replaces it.
  for (const part of ['key', 'cert'] as const) {
    writeFileSync(`${files[part]}.new`, pair[part], { mode: 0o600 })
    renameSync(`${files[part]}.new`, files[part])
  }
}

/** Returns the names and addresses of a new self-signed certificate; the addresses of the machine change later. */
function ownNames(config: Config) {
  const addresses = Object.values(networkInterfaces())
    .flatMap(all => all ?? [])
    .filter(({ internal, address }) => !internal && !address.startsWith('fe80:'))
    .map(({ address }) => address)
  return [...new Set([...configuredNames(config), ...addresses])]
}

/** Returns the names that the Host check accepts and the address of `listen`: what a certificate must have. */
function configuredNames({ public_url, allowed_hosts, listen }: Config) {
  const named = [public_url && hostName(new URL(public_url).host), ...allowed_hosts.map(hostName)]
  const address = hostName(listen)
  if (address && isIP(address) && address !== '0.0.0.0' && address !== '::') named.push(address)
  return [...new Set(['localhost', '127.0.0.1', '::1', ...named.flatMap(name => (name ? [name] : []))])]
}

/** Returns the text of a PEM file from its first block on, because some programs write a description before it. */
function pem(path: string, what: string, begin: RegExp) {
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
  if (at < 0) throw new Failure('invalid_value', `The file ${path} contains no ${what} in PEM format.`)
  return text.slice(at)
}

function parsed<T>(path: string, what: string, read: () => T) {
  try {
    return read()
  } catch (cause) {
    throw new Failure('invalid_value', `The ${what} ${path} cannot be read: ${(cause as Error).message}.`, { cause })
  }
}
