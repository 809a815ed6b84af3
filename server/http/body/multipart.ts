import type { IncomingMessage } from 'node:http'
import type { Readable } from 'node:stream'
import { Busboy } from '@fastify/busboy'
import type { z } from 'zod'
import { canonicalHash } from '../../../core/canonical.ts'
import { Failure, invalid } from '../../../core/failure.ts'
import { write } from '../../../core/files/write.ts'
import type { ClientExchange } from '../request/exchange.ts'
import { idempotencyKeyOf } from '../request/idempotency.ts'
import type { Owners } from '../request/owners.ts'
import { tooLarge } from './body.ts'
import { askForBody } from './unread-body.ts'

type Schemas = Readonly<Record<string, z.ZodType>>

/**
 * Converts the fields of a form to a JSON body. A form contains only text, so each field is read in the first way that
 * its schema accepts: `null` as null, else as text, number or boolean; a repeated field as a list; and `name[key]` as a
 * member of an object. The schema refuses later what fits in no way. Fields without a schema stay text.
 */
export function formValues(fields: Form['fields'], shape: Schemas): Record<string, unknown> {
  const body: Record<string, unknown> = Object.create(null) as Record<string, unknown>
  const objects = new Map<string, [key: string, text: string][]>()
  for (const [name, texts] of fields) {
    const [, object, key] = /^([^[\]]+)\[([^[\]]+)\]$/.exec(name) ?? []
    if (object !== undefined && key !== undefined) {
      objects.set(object, [...(objects.get(object) ?? []), [key, texts.at(-1)!]])
      continue
    }
    const schema = Object.hasOwn(shape, name) ? shape[name] : undefined
    body[name] = fitting(schema, texts.length === 1 ? readings(texts[0]!) : [texts, texts.map(literalOf)])
  }
  for (const [name, members] of objects) {
    const schema = Object.hasOwn(shape, name) ? shape[name] : undefined
    const read = (how: (text: string) => unknown) => Object.fromEntries(members.map(([key, text]) => [key, how(text)]))
    body[name] ??= fitting(schema, [read(text => text), read(literalOf)])
  }
  return body
}

/** Returns the values that a single text may mean. */
const readings = (text: string) => [text, literalOf(text), [text], [literalOf(text)]]

const numeral = /^-?\d{1,20}(?:\.\d{1,20})?(?:e[+-]?\d{1,3})?$/i

/** Returns the number, boolean or null that a text looks like, else the text. */
function literalOf(text: string): unknown {
  if (numeral.test(text)) return Number(text)
  if (text === 'true' || text === 'false') return text === 'true'
  return text === 'null' ? null : text
}

/** Returns the first value that the schema accepts; if it accepts none, the one with the most helpful error. */
function fitting(schema: z.ZodType | undefined, possible: readonly unknown[]) {
  const [text, literal] = possible
  if (!schema) return text
  const accepts = (value: unknown) => schema.safeParse(value).success
  // `null` in an optional field means null and not the text.
  if (literal === null && accepts(null)) return null
  const accepted = possible.find(accepts)
  // Browsers send a field that was not filled in as an empty text.
  return accepted === undefined && text === '' && accepts(null) ? null : (accepted ?? literal)
}

/** A file of a form. Its bytes stay on disk until the form is disposed of. */
export interface FormFile {
  /** The name that the client sent, which is untrusted; empty without one. */
  name: string
  /** The type that the client sent, which is untrusted. */
  contentType: string
  /** Absolute path. */
  path: string
  bytes: number
  /** Hex. */
  sha256: string
}

/**
 * A complete form (`multipart/form-data`). Clients send lists as repeated `name`, as `name[]` or as `name[0]`: all are
 * under `name` here. Dispose of it when its files have been stored elsewhere.
 */
export interface Form extends AsyncDisposable {
  fields: ReadonlyMap<string, readonly string[]>
  files: ReadonlyMap<string, readonly FormFile[]>
}

export interface FormOptions {
  /** Maximum number of files by field name; files of other fields are ignored. */
  files: Readonly<Record<string, number>>
  /** Maximum bytes of one file. */
  maxBytes: number
}

/** Limits of what is kept in memory: the fields, and the headers of the parts. */
const bounds = { fields: 256, parts: 512, fieldNameSize: 128, fieldSize: 1 << 20, headerPairs: 16, headerSize: 8_192 }
const maxText = (1 << 20) + (64 << 10)

const invalidForm = (message: string) => new Failure('invalid_value', message)

/** Whether the body of a request is a form. */
export const isForm = (req: IncomingMessage): boolean =>
  /^multipart\/form-data\s*(?:;|$)/i.test(req.headers['content-type'] ?? '')

/**
 * Reads a request body that is a form, and writes its files to the disk as they arrive. Sets the body's hash where the
 * request has an idempotency key. Throws Failure `unsupported_media_type`, `payload_too_large`,
 * `array_above_max_length`, `invalid_value` for a malformed form, `disk_full`, `cancelled`; then all files are removed.
 */
export async function readForm(
  exchange: ClientExchange,
  options: FormOptions,
  owners: Owners<'config' | 'files'>,
): Promise<Form> {
  const { config, files } = owners
  const { req } = exchange
  const maxForm = config.limits.upload_size
  checkHead(req)
  if (Number(req.headers['content-length'] ?? 0) > maxForm) throw tooLarge('The form is', maxForm)
  files.admit()
  const workspace = await files.workspace(exchange.id)
  try {
    const form = await receive(req, { ...options, folder: workspace.folder, maxForm })
    if (idempotencyKeyOf(exchange) !== undefined) exchange.bodyHash = hashOf(form)
    return { ...form, [Symbol.asyncDispose]: () => workspace[Symbol.asyncDispose]() }
  } catch (thrown) {
    await workspace[Symbol.asyncDispose]()
    throw thrown
  }
}

function checkHead(req: IncomingMessage) {
  const refused = (message: string) => new Failure('unsupported_media_type', message)
  if (!isForm(req)) throw refused('Send the body as multipart/form-data.')
  const encoding = req.headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity')
    throw refused(`A form with Content-Encoding '${encoding.slice(0, 40)}' is not supported; send it uncompressed.`)
}

type Received = Pick<Form, 'fields' | 'files'>

/** `name[]` and `name[3]` are members of the list `name`. */
const plainName = (name: string) => /^([^[\]]+)\[\d*\]$/.exec(name)?.[1] ?? name

async function receive(
  req: IncomingMessage,
  { files: maxFiles, maxBytes, folder, maxForm }: FormOptions & { folder: string; maxForm: number },
): Promise<Received> {
  const fields = new Map<string, string[]>()
  const files = new Map<string, FormFile[]>()
  const counts = new Map<string, number>()
  const writes: Promise<void>[] = []
  const open = new Set<Readable>()
  const parser = parserFor(req)
  let size = 0
  let text = 0
  let fault: { thrown: unknown } | undefined

  /** Writes a file to the disk. Files keep the order in which they were sent, even if a later one is written first. */
  async function keep(name: string, at: number, source: Readable, sent: Pick<FormFile, 'name' | 'contentType'>) {
    open.add(source)
    try {
      const refused = () => tooLarge(`The file in '${name}' is`, maxBytes, name)
      const written = await write(folder, source, maxBytes, refused, { durable: false })
      const list = files.get(name) ?? []
      files.set(name, list)
      list[at] = { ...sent, ...written }
    } finally {
      open.delete(source)
    }
  }

  const whole = new Promise<void>((resolve, reject) => {
    const stop = (thrown: unknown) => {
      if (fault) return
      fault = { thrown }
      req.unpipe(parser)
      req.resume()
      for (const source of open) source.destroy()
      reject(thrown)
    }
    const cancel = () => stop(new Failure('cancelled', 'The client disconnected before its request was complete.'))
    // `close` follows a complete request too.
    const onClose = () => void (req.complete || cancel())
    req.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > maxForm) stop(tooLarge('The form is', maxForm))
    })
    req.on('close', onClose).on('error', onClose)
    // The request may have closed while the folder was created; its bytes are lost then, even if all were received.
    if (req.destroyed) return cancel()
    for (const event of ['partsLimit', 'fieldsLimit'] as const)
      parser.on(event, () => stop(invalidForm('The form has too many parts.')))
    parser.on('field', (sent, value, _nameCut, cut) => {
      const name = fieldName(sent)
      if (name === undefined) return stop(invalidForm('A field of the form has no name, or its name is too long.'))
      if (cut) return stop(tooLarge(`The field '${name}' is`, bounds.fieldSize, name))
      text += value.length
      if (text > maxText) return stop(tooLarge('The fields of the form together are', maxText))
      const list = fields.get(name)
      if (list) list.push(value)
      else fields.set(name, [value])
    })
    parser.on('file', (field, source, fileName, _encoding, contentType) => {
      // If the form ends too early, the parser emits the same error.
      source.on('error', () => {})
      const name = fieldName(field)
      const limit = name !== undefined && Object.hasOwn(maxFiles, name) ? maxFiles[name]! : 0
      if (fault || name === undefined || limit === 0) return source.resume()
      const at = counts.get(name) ?? 0
      counts.set(name, at + 1)
      if (at >= limit) {
        source.resume()
        const message = limit === 1 ? `Send one file in '${name}'.` : `Send at most ${limit} files in '${name}'.`
        return stop(invalid(name, message, 'array_above_max_length'))
      }
      const sent = { name: (fileName ?? '').slice(0, 512), contentType: contentType.slice(0, 128) }
      writes.push(keep(name, at, source, sent).catch(stop))
    })
    parser.on('error', cause => stop(malformed(cause)))
    parser.on('finish', () => resolve())
    askForBody(req)
    req.pipe(parser)
  })
  try {
    await whole
  } finally {
    await Promise.all(writes)
  }
  // Writing the last file may have failed after the whole form was read.
  if (fault) throw fault.thrown
  return { fields, files: withoutEmpty(files) }
}

function parserFor(req: IncomingMessage) {
  try {
    return new Busboy({ headers: { ...req.headers, 'content-type': req.headers['content-type']! }, limits: bounds })
  } catch (cause) {
    throw malformed(cause)
  }
}

const malformed = (cause: unknown) =>
  new Failure('invalid_value', 'The body is not a well-formed multipart/form-data form, or it ends too early.', {
    cause,
  })

const fieldName = (sent: string | undefined) =>
  sent === undefined || sent === '' || sent.length > bounds.fieldNameSize ? undefined : plainName(sent)

/** A browser sends a file field without a chosen file as an empty file without a name. */
function withoutEmpty(files: ReadonlyMap<string, readonly FormFile[]>) {
  const chosen = [...files].map(([name, list]) => [name, list.filter(one => one.bytes > 0 || one.name !== '')] as const)
  return new Map(chosen.filter(([, list]) => list.length > 0))
}

const hashOf = ({ fields, files }: Received) =>
  canonicalHash([
    Object.fromEntries(fields),
    Object.fromEntries([...files].map(([name, list]) => [name, list.map(({ sha256 }) => sha256)])),
  ])
