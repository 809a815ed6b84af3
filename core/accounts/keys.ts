import { createPrivateKey, createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { Failure } from '../failure.ts'

/** Keys derived from the master key, one for each use, so that none can be used in place of another. */
export interface Keys {
  tokenPepper: KeyObject
  /** Signs the URLs of files. */
  links: KeyObject
  /** The signing secrets of webhooks are derived from it. */
  webhooks: KeyObject
  /** Ed25519: signs webhooks in fal's form. Its public half is published. */
  webhookSigning: KeyObject
  /** The tokens with which nodes that wait are answered are derived from it. */
  waits: KeyObject
  /** Signs the links to conversations. */
  conversationLinks: KeyObject
  /** Names the organizations and models of saved conversations. */
  caches: KeyObject
  /** Proves to the keeper of engines that this is a server of the data directory. */
  keeper: KeyObject
}

const derive = (master: Uint8Array, use: string): KeyObject =>
  createSecretKey(Buffer.from(hkdfSync('sha256', master, '', `infer/${use}/v1`, 32)))

/** What precedes the 32 bytes of an Ed25519 private key in PKCS #8. */
const pkcs8Ed25519 = Buffer.from('302e020100300506032b657004220420', 'hex')

const deriveEd25519 = (master: Uint8Array, use: string): KeyObject =>
  createPrivateKey({
    key: Buffer.concat([pkcs8Ed25519, derive(master, use).export()]),
    format: 'der',
    type: 'pkcs8',
  })

/**
 * The keys of this installation, derived from 32 bytes in base64: `given` (`INFER_MASTER_KEY`, already removed from the
 * environment), or the file `master-key` in the data directory, which is created with mode 0600 if missing. Without the
 * key no token works, so a backup of the data directory must include it.
 */
export function openStoredKeys(dataDir: string, given?: string): Keys {
  const master = Buffer.from(given ?? readOrCreate(join(dataDir, 'master-key')), 'base64')
  if (master.length !== 32)
    throw new Failure(
      'invalid_value',
      `The master key must be 32 bytes in base64; this one has ${master.length} bytes.`,
    )
  return {
    tokenPepper: derive(master, 'token-pepper'),
    links: derive(master, 'links'),
    webhooks: derive(master, 'webhooks'),
    webhookSigning: deriveEd25519(master, 'webhook-signing'),
    waits: derive(master, 'waits'),
    conversationLinks: derive(master, 'conversation-links'),
    caches: derive(master, 'caches'),
    keeper: derive(master, 'keeper'),
  }
}

function readOrCreate(path: string): string {
  try {
    const file = openSync(path, 'wx', 0o600)
    const key = randomBytes(32).toString('base64')
    writeSync(file, key)
    fsyncSync(file)
    closeSync(file)
    return key
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause
    return readFileSync(path, 'utf8').trim()
  }
}
