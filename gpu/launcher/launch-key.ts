import { generateKeyPair, randomBytes, sign } from 'node:crypto'
import { promisify } from 'node:util'

const generate = promisify(generateKeyPair)

/** A certificate and its private key as PEM texts. */
export interface LaunchKey {
  certificate: string
  key: string
}

const value = (tag: number, ...parts: Uint8Array[]): Buffer => {
  const content = Buffer.concat(parts)
  const size = content.length
  const length = size < 0x80 ? [size] : size < 0x100 ? [0x81, size] : [0x82, size >> 8, size & 0xff]
  return Buffer.concat([Buffer.from([tag, ...length]), content])
}
const sequence = (...parts: Uint8Array[]): Buffer => value(0x30, ...parts)
const hex = (text: string): Buffer => Buffer.from(text, 'hex')

const ecdsaWithSha256 = sequence(hex('06082a8648ce3d040302'))
/** CN=infer */
const name = sequence(value(0x31, sequence(hex('0603550403'), value(0x0c, Buffer.from('infer')))))
/** It ends with its launch; clocks of nodes may be wrong. */
const validity = sequence(value(0x18, Buffer.from('20000101000000Z')), value(0x18, Buffer.from('99991231235959Z')))
/** BasicConstraints: it is the authority of itself. */
const extensions = value(
  0xa3,
  sequence(sequence(hex('0603551d13'), hex('0101ff'), value(0x04, sequence(hex('0101ff'))))),
)

/**
 * Makes the key of a launch: a self-signed certificate that both sides of a connection present, and that each of them trusts
 * alone.
 */
export async function newLaunchKey(): Promise<LaunchKey> {
  const { publicKey, privateKey } = await generate('ec', { namedCurve: 'P-256' })
  // A serial number is positive: its first bit is 0, and its first byte is not.
  const serial = randomBytes(16)
  serial[0] = (serial[0]! & 0x7f) | 0x40
  const content = sequence(
    value(0xa0, hex('020102')),
    value(0x02, serial),
    ecdsaWithSha256,
    name,
    validity,
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    extensions,
  )
  const signature = value(0x03, hex('00'), sign('sha256', content, privateKey))
  return {
    certificate: pem('CERTIFICATE', sequence(content, ecdsaWithSha256, signature)),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
  }
}

const pem = (label: string, bytes: Buffer): string =>
  `-----BEGIN ${label}-----\n${bytes.toString('base64').replace(/.{1,64}/g, '$&\n')}-----END ${label}-----\n`
