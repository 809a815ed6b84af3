import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { invalidValue } from '../../core/failure.ts'
import { readConfig } from '../../core/models/config.ts'
import { editConfigFile, previewConfigEdit } from '../../core/models/config-file.ts'
import { addModel, type ModelEntry } from '../../core/models/edit.ts'
import { engineFacts } from '../../core/models/engine-facts.ts'
import type { Model } from '../../core/models/model.ts'
import { namesOf } from '../../core/models/model-names.ts'
import { idFrom } from '../../core/models/propose.ts'
import { addedAdapterAdvice, checkAdapter } from '../../gpu/estimate/adapters.ts'
import { traitsOf } from '../../gpu/presets/presets.ts'
import { shellWord } from '../serve/try-next.ts'
import { refused, usageFailure } from '../terminal/exit-codes.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { confirm } from '../terminal/standard-input.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type AddOptions, requireInteractive } from './add.ts'
import { isOffered } from './status.ts'

/** Settings of the engine, which an adapter has from its base. */
const ofTheBase = ['task', 'context', 'concurrency', 'engine', 'memory', 'comfyui'] as const

/**
 * `infer model add <lora> --adapter-of <base>`: checks a LoRA adapter against its base model, and adds it to infer.yaml of this
 * machine. Throws Failure for one that the engine of the base cannot use.
 */
export async function addAdapter(
  what: string,
  options: AddOptions & { adapterOf: string; dataDir: string; withoutQuestion?: boolean },
  terminal: Terminal,
  signal: AbortSignal,
): Promise<void> {
  const { adapterOf: of, dataDir, json, yes, dryRun, withoutQuestion } = options
  const foreign = ofTheBase.find(name => options[name] !== undefined)
  if (foreign) throw usageFailure(`--${foreign} is a setting of the base model: an adapter has none of its own.`)
  requireInteractive(options, terminal)
  const path = options.config ?? join(dataDir, 'infer.yaml')
  const { models } = readConfig(path, options.config !== undefined, traitsOf)
  const base = baseOf(of, models, path)
  const source = sourceOf(what, base)
  const taken = new Set(models.flatMap(namesOf))
  const id = options.id ?? idFrom([source], null, taken)
  const entry: ModelEntry = { id, adapter: { of: base.id, source } }
  const edit = (text: string, name: string) => addModel(text, entry, name)
  // What the engine cannot do is refused before the files are read.
  const lines = previewConfigEdit(path, edit, traitsOf)
  const found = await checkAdapter(base, source)
  const { bytes, fault } = found
  if (fault !== undefined) throw invalidValue(fault)
  const advice = await addedAdapterAdvice(base, found)
  const proposal = { model: entry, memory: bytes, obstacle: null, advice, config: path }
  if (dryRun && json) return terminal.json({ ...proposal, fits: true, lines })
  if (!json) {
    terminal.print(terminal.paint.name(id))
    terminal.print(`  ${terminal.paint.faint('source')}  ${printable(source)}`)
    terminal.print(`  ${terminal.paint.faint('is')}      an adapter of ${printable(base.id)} (${base.engine})`)
    if (bytes !== null) terminal.print(`  ${terminal.paint.faint('memory')}  ${sizeText(bytes)} with its base`)
    for (const sentence of advice) terminal.warn(sentence)
  }
  if (dryRun) {
    terminal.print(`\nThis would be added to ${path}:\n`)
    for (const line of lines.added) terminal.print(printable(line))
    return
  }
  if (!yes && !withoutQuestion && !(await confirm(`Add it to ${path}?`, true, terminal, signal)))
    return terminal.remark('Nothing was changed.')
  editConfigFile(path, edit, traitsOf)
  const offered = await isOffered(id, dataDir, signal)
  if (json) return terminal.json({ ...proposal, offered: offered ?? null })
  terminal.print(`Added '${id}' to ${path}.`)
  const next = `infer run ${shellWord(id)} "Hello"`
  terminal.print(offered ? `Ready to use: ${next}` : `Start the server with: infer serve. Then: ${next}`)
}

/** Returns the model with this id. Throws Failure for another name. */
function baseOf(of: string, models: readonly Model[], path: string): Model {
  const base = models.find(({ id }) => id === of)
  if (base) return base
  const owner = models.find(model => namesOf(model).includes(of))
  if (owner) throw invalidValue(`'${of}' is a name of '${owner.id}'. Give that: --adapter-of ${owner.id}`)
  const known = models.map(({ id }) => id)
  throw refused(
    'model_not_found',
    known.length > 0
      ? `${path} has no model '${of}'. It has: ${known.join(', ')}.`
      : `${path} has no model '${of}'. Add the base model first: infer model add <model>`,
  )
}

/** Returns the path of a LoRA, or its name on the hub for an engine that fetches it. */
function sourceOf(what: string, { engine }: Model): string {
  const name = what.replace(/^hf:/, '')
  if (existsSync(resolve(what))) return resolve(what)
  if (engineFacts(engine).loadsAdapters === 'running' && /^\w[\w.-]*\/\w[\w.-]*$/.test(name)) return name
  throw invalidValue(
    `There is no file or folder '${resolve(name)}'. Name the LoRA on this machine; only vllm and sglang fetch one of a hub.`,
  )
}
