import { readFileSync } from 'node:fs'
import { InvalidArgumentError } from '@commander-js/extra-typings'
import type { Dag, Parameter, Parameters, ParameterType } from '../../core/dag/definition.ts'
import { Failure } from '../../core/failure.ts'
import { isObject, jsonOf } from '../../core/json.ts'
import { referencesOfNode } from '../../core/workflows/bind.ts'
import { fillParameters, misfit } from '../../core/workflows/parameters.ts'
import { usedParameters } from '../../core/workflows/plan.ts'
import { ReferenceFault } from '../../core/workflows/references.ts'
import type { Client } from '../client/client.ts'
import { isAddress, mediaOf, type PendingUpload, uploadMedia } from '../generation/media.ts'
import { unreadable, usageFailure } from '../terminal/exit-codes.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'

const referredTo = (dag: Dag): Set<string> =>
  usedParameters(
    Object.values(dag.nodes)
      .flatMap(referencesOfNode)
      .flatMap(({ reference }) => (reference instanceof ReferenceFault ? [] : [reference])),
  )

/**
 * Checks that the workflow has the given parameters: with a mistyped name the whole execution would use the default.
 * Throws usage for an unknown `--param`. A file may serve several workflows, so unknown names in it are returned as a
 * warning.
 */
export function checkNames(
  given: { options: readonly string[]; file: readonly string[] },
  dag: Dag,
  declared: Parameters | null,
): string | undefined {
  const known = new Set([...Object.keys(declared ?? {}), ...referredTo(dag)])
  const unknownNames = (names: readonly string[]) => names.filter(name => !known.has(name)).map(name => `'${name}'`)
  const has =
    known.size === 0
      ? 'It takes no parameters.'
      : `Its ${known.size === 1 ? 'parameter is' : 'parameters are'} ${[...known].map(name => `'${name}'`).join(', ')}.`
  const [wrong] = unknownNames(given.options)
  if (wrong !== undefined) throw usageFailure(printable(`The workflow has no parameter ${wrong}. ${has}`))
  const unused = unknownNames(given.file)
  if (unused.length === 0) return undefined
  return printable(`The workflow does not use ${unused.join(', ')} of the parameter file. ${has}`)
}

/** Returns the values of a parameter file that the workflow has a parameter for. */
export function usedOf(
  values: Readonly<Record<string, unknown>>,
  dag: Dag,
  declared: Parameters | null,
): Record<string, unknown> {
  const used = referredTo(dag)
  return Object.fromEntries(
    Object.entries(values).filter(([name]) => used.has(name) || Object.hasOwn(declared ?? {}, name)),
  )
}

/** Throws usage when the workflow does not accept the values. The message names the command line's options. */
export function checkValues(values: Readonly<Record<string, unknown>>, dag: Dag, declared: Parameters | null): void {
  // A pending upload becomes a URL later, so its path stands in for it here.
  const checked = Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, isPendingUpload(value) ? value.path : value]),
  )
  try {
    fillParameters(checked, declared, referredTo(dag))
  } catch (thrown) {
    if (!(thrown instanceof Failure)) throw thrown
    const { code, message, param = '', details } = thrown
    const wrong = details ?? [{ code, message, path: param }]
    const missing = wrong
      .filter(one => one.code === 'missing_required_parameter')
      .map(({ path }) => path.replace('input_params.', ''))
    const [first] = missing
    throw usageFailure(
      first === undefined
        ? message.replace(/^'input_params\.([^']*)'/, "The parameter '$1'")
        : `The workflow needs ${missing.length === 1 ? `the parameter '${first}'` : `the parameters ${missing.map(one => `'${one}'`).join(', ')}`}. Give it: ${missing.map(one => `--param ${one}=…`).join(' ')}`,
    )
  }
}

/** Lifetime of an upload in seconds: nodes read files when they run, which may be hours after the start. */
const keptSeconds = 86_400

/** Returns the file id in a URL, because nodes cannot resolve the URL under which this client reaches the server. */
const idIn = (url: string): string => /\/files\/(file-[0-9A-Z]{26})/.exec(url)?.[1] ?? url

/** Uploads files that are too large for the request, and returns the values with file ids in their place. */
export async function uploadFiles(
  values: Readonly<Record<string, unknown>>,
  client: Client,
  terminal: Terminal,
): Promise<Record<string, unknown>> {
  const sent: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(values))
    sent[name] = isPendingUpload(value) ? idIn(await uploadMedia(client, value, terminal, keptSeconds)) : value
  return sent
}

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
  const content = text.startsWith('@') ? fileText(`the parameter '${name}'`, text.slice(1)) : text
  if (type === 'string' || type === 'file') return content
  const json = jsonOf(content)
  return json !== undefined && (type === undefined || misfit(json, type) === undefined) ? json : content
}

/** Returns the JSON that an option gives for a node; `@path` reads it from a file. Throws usage for other text. */
export function jsonValueOf(flag: string, name: string, text: string): unknown {
  const value = jsonOf(text.startsWith('@') ? fileText(`${flag} ${name}`, text.slice(1)) : text)
  if (value === undefined)
    throw usageFailure(printable(`${flag} ${name} is not JSON. Give it as ${flag} ${name}=@file.`))
  return value
}

/** Returns changed inputs by node: those of a file, overridden by each `node.input=value`. Throws usage. */
export function changesOf(
  fromFile: Readonly<Record<string, unknown>>,
  given: readonly GivenParameter[],
): Record<string, { inputs: Record<string, unknown> }> {
  const changes = new Map<string, Record<string, unknown>>()
  for (const [node, inputs] of Object.entries(fromFile)) {
    if (!isObject(inputs)) throw usageFailure(printable(`The changes of '${node}' are no inputs. Write them by name.`))
    changes.set(node, inputs)
  }
  for (const { name, text } of given) {
    const [node = '', ...rest] = name.split('.')
    const input = rest.join('.')
    if (node === '' || input === '') throw usageFailure(printable(`Write --change ${name} as node.input=value.`))
    changes.set(node, { ...changes.get(node), [input]: valueOf({ name, text }, undefined) })
  }
  return Object.fromEntries([...changes].map(([node, inputs]) => [node, { inputs }]))
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

const isPendingUpload = (value: unknown): value is PendingUpload =>
  value !== null && typeof value === 'object' && 'path' in value && 'size' in value && 'type' in value

/** Returns the text of a file; `owner` says in an error what it is for. */
function fileText(owner: string, path: string): string {
  try {
    // Editors add the last newline; it is not part of the text.
    return readFileSync(path, 'utf8').replace(/\r?\n$/, '')
  } catch (cause) {
    throw unreadable(`The file ${path} of ${owner}`, cause)
  }
}
