import { join } from 'node:path'
import { hostEnvironment } from '../../core/config.ts'
import { readConfig } from '../../core/models/config.ts'
import { engineFacts } from '../../core/models/engine-facts.ts'
import type { CatalogModel } from '../../core/models/model-catalog/catalog-model.ts'
import { starterName } from '../../core/models/model-catalog/model-catalog.ts'
import { packageIndex } from '../../core/models/package-index/find-package-file.ts'
import { weightBytes } from '../../gpu/estimate/catalog-shape.ts'
import { refused, usageFailure } from '../terminal/exit-codes.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { confirm } from '../terminal/standard-input.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type AddOptions, addOne, obstructed, requireForce, requireInteractive } from './add.ts'
import { type BuildChoice, chooseBuild, isSizeEstimated, machineFacts, projectorBytes } from './catalog-fit.ts'
import { installAdvice } from './engine-programs.ts'
import { locateBuild } from './locate.ts'

/**
 * Adds a model of the catalog: chooses the engine and quantization that fit this machine, explains the choice, asks,
 * and calls `addOne`. `withoutQuestion` asks only if the model cannot run here.
 */
export async function addFromCatalog(
  model: CatalogModel,
  options: AddOptions & { dataDir: string; withoutQuestion?: boolean },
  terminal: Terminal,
  signal: AbortSignal,
): Promise<void> {
  const { json, yes, withoutQuestion, dataDir } = options
  requireInteractive(options, terminal)
  const path = options.config ?? join(dataDir, 'infer.yaml')
  const id = options.id ?? model.name
  const { models } = readConfig(path, options.config !== undefined)
  if (models.some(one => one.id === id)) {
    if (!withoutQuestion)
      throw refused('conflict', `${path} has a model '${id}' already. Choose another --id, or remove that model first.`)
    return json
      ? terminal.json({ model: { id }, config: path, offered: true })
      : terminal.print(`'${id}' is offered already.`)
  }
  terminal.waiting('Checking the memory of this machine')
  const machine = await machineFacts(dataDir)
  terminal.progress('')
  const choice = chooseBuild(model, machine, options)
  if (!choice) throw usageFailure(noBuild(model, options.engine!))
  const { build, fit } = choice
  if (fit.grade === 'external')
    throw refused(
      'unsupported_task',
      `infer cannot set '${model.name}' up by itself. Run it with ${model.runs_with ?? 'a server of your own'}, and write its entry in infer.yaml. See: infer help engines`,
    )
  const obstacle = obstacleOf(model, choice)
  if (!json) show(model, choice, terminal)
  const doesNotFit = fit.grade === 'no'
  if (doesNotFit && !options.dryRun) requireForce(obstacle!, options)
  if (obstacle !== null && !json) terminal.warn(obstacle)
  if (!yes && !options.dryRun && (!withoutQuestion || (obstacle !== null && !doesNotFit))) {
    if (json || !terminal.interactive) throw obstructed(obstacle!, '--yes', options)
    const question = `Download ${downloadText(choice, model)} and add it to ${path}?`
    if (!(await confirm(question, obstacle === null || doesNotFit, terminal, signal)))
      return terminal.remark('Nothing was changed.')
  }
  const engine = options.engine ?? (engineFacts(build.engine).isBuiltIn ? undefined : (build.engine ?? undefined))
  await addOne(
    model.name,
    {
      ...options,
      id,
      engine,
      task: options.task ?? model.tasks,
      withoutQuestion: true,
      // The files can need more memory than the catalog predicts: then `addOne` refuses before the download.
      yes: yes === true || obstacle !== null,
      // The server's estimate assumes that a pipeline is loaded as a whole.
      memory: options.memory ?? (needsMemory(choice) ? `${Math.ceil(fit.memory! / 2 ** 20)}MiB` : undefined),
      toys: options.toys ?? model.aliases.includes(starterName),
    },
    terminal,
    signal,
    {
      hasOwnId: options.id !== undefined,
      locate: tools =>
        locateBuild(model, build, {
          ...tools,
          index: () => packageIndex(hostEnvironment()),
          onFallback(reason, from) {
            terminal.progress('')
            terminal.remark(`${reason} Fetching ${model.title} from ${from} instead.`)
          },
        }),
      json: {
        name: model.name,
        license: model.license,
        engine: build.engine,
        quantization: build.quantization,
        why: choice.why,
        fit,
      },
    },
  )
}

/** Whether the entry must say the memory of a build, because the server's own estimate is another. */
const needsMemory = ({ build, fit }: BuildChoice): boolean =>
  fit.memory !== null && build.further_parameters !== undefined && fit.grade === 'split'

/** Returns why the model cannot run here, as a sentence; null when it can. */
function obstacleOf(
  { name, tasks }: CatalogModel,
  { build: { engine }, fit: { grade, text } }: BuildChoice,
): string | null {
  if (grade === 'no') return `'${name}' does not fit this machine: ${text.replace(/^no: /, '')}.`
  if (grade === 'missing') return `'${name}' cannot run yet. ${installAdvice(engine!, tasks)}`
  return null
}

function show(model: CatalogModel, choice: BuildChoice, terminal: Terminal): void {
  const { build, fit, why } = choice
  const facts: [string, string][] = [
    ['model', `${model.title}: ${model.summary}`],
    ['licence', `${model.license}${build.gated ? '; the hub requires an account that has accepted it' : ''}`],
    ['from', `hf:${build.repository}${build.file === null ? '' : `:${build.file}`}, ${downloadText(choice, model)}`],
    ['engine', build.engine ?? '-'],
    ['fits', fit.text],
    ['because', why],
  ]
  terminal.print(terminal.paint.name(model.name))
  for (const [about, text] of facts) terminal.print(`  ${terminal.paint.faint(about.padEnd(8))}${printable(text)}`)
}

function downloadText({ build }: BuildChoice, model: CatalogModel): string {
  const weights = weightBytes(model, build)
  if (weights === null) return 'a model of unknown size'
  return `${isSizeEstimated(build) ? 'about ' : ''}${sizeText(weights + projectorBytes(build))}`
}

function noBuild({ name, builds }: CatalogModel, engine: string): string {
  const engines = [...new Set(builds.flatMap(build => build.engine ?? []))]
  return `The catalog has '${name}' for ${engines.join(' and ') || 'no engine that infer starts'}, not for '${engine}'. To use this engine, name a repository: infer model add hf:owner/name --engine ${engine}`
}
