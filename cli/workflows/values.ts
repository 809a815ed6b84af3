import { readFileSync } from 'node:fs'
import { InvalidArgumentError } from 'commander'
import type { Parameter, Parameters, ParameterType } from '../../core/dag/definition.ts'
import { misfit } from '../../core/workflows/parameters.ts'
import { isAddress, mediaOf, type PendingUpload } from '../generation/media.ts'
import { usageFailure } from '../terminal/exit-codes.ts'
import { unreadable } from '../terminal/unreadable.ts'

/** `name=value` as typed. */
export interface GivenParameter {
  name: string
  text: string
}

export function readParameter(text: string, before: GivenParameter[] = []): GivenParameter[] {
  const at = text.indexOf('=')
  if (at <= 0) throw new InvalidArgumentError('Write it as name=value; name=@file reads a file.')
  const name = text.slice(0, at)
  if (before.some(one => one.name === name)) throw new InvalidArgumentError(`'${name}' is given twice.`)
  return [...before, { name, text: text.slice(at + 1) }]
}

const media = { image: 'image', audio: 'audio', video: 'video' } as const
const isMedium = (type: ParameterType | undefined): type is keyof typeof media =>
  type !== undefined && Object.hasOwn(media, type)

/**
 * Returns the value of a parameter: JSON if it has the declared type, else the text. `@path` reads the text from a
 * file; for images, videos and audio it takes the file itself, as a `data:` URL or, if it is too large, as a pending
 * upload. Without a declared type: JSON if it parses. Throws usage.
 */
export function valueOf({ name, text }: GivenParameter, declared: Parameter | undefined): unknown {
  const type = declared?.type
  if (isMedium(type)) {
    if (text.startsWith('@')) return mediaOf(media[type], text.slice(1), { flag: `--param ${name}` })
    if (isAddress(text)) return text
    throw usageFailure(`'${name}' is of type ${type}. Give a file as --param ${name}=@path, or a URL.`)
  }
  const content = text.startsWith('@') ? fileText(name, text.slice(1)) : text
  if (type === 'string' || type === 'file') return content
  const json = jsonOf(content)
  return json !== undefined && (type === undefined || misfit(json.value, type) === undefined) ? json.value : content
}

/** Returns all parameter values: those of `--params`, overridden by each `--param`. */
export const parameterValues = (
  fromFile: Readonly<Record<string, unknown>>,
  given: readonly GivenParameter[],
  declared: Parameters | null,
): Record<string, unknown> => ({
  ...fromFile,
  ...Object.fromEntries(
    given.map(one => [
      one.name,
      valueOf(one, declared && Object.hasOwn(declared, one.name) ? declared[one.name] : undefined),
    ]),
  ),
})

export const isPendingUpload = (value: unknown): value is PendingUpload =>
  value !== null && typeof value === 'object' && 'path' in value && 'size' in value && 'type' in value

function jsonOf(text: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch {
    return undefined
  }
}

function fileText(name: string, path: string): string {
  try {
    // Editors add the last newline; it is not part of the text.
    return readFileSync(path, 'utf8').replace(/\r?\n$/, '')
  } catch (cause) {
    throw unreadable(`The file ${path} of the parameter '${name}'`, cause)
  }
}
