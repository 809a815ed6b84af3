import { type Command, Option } from '@commander-js/extra-typings'
import { dataDirectory, hostEnvironment } from '../../core/config.ts'
import type { ModelBenchmark } from '../../core/models/benchmark.ts'
import { engineFacts } from '../../core/models/engine-facts.ts'
import { behindProxy } from '../../core/models/hub/proxy.ts'
import { hubSettings } from '../../core/models/hub/settings.ts'
import { type CatalogKind, type CatalogModel, catalogKinds } from '../../core/models/model-catalog/catalog-model.ts'
import { findCatalogModel, modelCatalog, nearestCatalogNames } from '../../core/models/model-catalog/model-catalog.ts'
import { didYouMean } from '../../core/nearest.ts'
import { weightBytes } from '../../gpu/estimate/catalog-shape.ts'
import { gpuSetup } from '../../gpu/placement/engine-placement.ts'
import { exitCodes, usageFailure } from '../terminal/exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import { type CommonOptions, withCommon, withExamples } from '../terminal/options.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { benchmarkLines, benchmarkRate } from './benchmark-text.ts'
import {
  type BuildChoice,
  chooseBuild,
  fitOf,
  type Grade,
  isSizeEstimated,
  type MachineFacts,
  machineFacts,
  projectorBytes,
  rankOf,
} from './catalog-fit.ts'
import { withTokenFile } from './pull.ts'
import { storedBenchmarks } from './stored-benchmarks.ts'

interface Options extends CommonOptions {
  kind?: CatalogKind
  verify?: boolean
  tokenFile?: string
}

/** `infer model catalog`: well-known open models, and how each fits this machine. */
export function define(command: Command, terminal: Terminal): void {
  const catalog = withTokenFile(withCommon(command))
    .summary('list well-known open models and how they fit this machine')
    .description(
      'Lists well-known open models, best fit first: kind, licence, size, and how each fits this machine. With names shows all files of these models. Facts are from public sources; --verify checks them against the hub.',
    )
    .argument('[names...]', 'only these models, in detail')
    .addOption(new Option('--kind <kind>', 'only models of one kind').choices([...catalogKinds]))
    .option('--verify', 'check repositories, files, sizes and licences against the hub')
    .action((names, options) =>
      interruptible(terminal, async signal => {
        const models = chosenModels(names, options.kind)
        if (options.verify) return verify(models, options, terminal, signal)
        terminal.waiting('Checking the memory of this machine')
        const folder = dataDirectory(options.dataDir)
        const machine = await machineFacts(folder)
        const benchmarks = storedBenchmarks(folder)
        terminal.progress('')
        const rows = models
          .map(model => ({ model, choice: chooseBuild(model, machine)!, benchmark: benchmarks.get(model.name) }))
          .toSorted(
            (a, b) =>
              rankOf(a.model, a.choice.fit) - rankOf(b.model, b.choice.fit) || sizeOf(b.model) - sizeOf(a.model),
          )
        if (options.json)
          return terminal.json({
            machine: {
              gpus: machine.gpus,
              gpu_setup: needsSetup(machine) ? gpuSetup : null,
              gpu_memory_bytes: gpuMemory(machine),
              main_memory_bytes: machine.mainMemory,
            },
            models: rows.map(row => ({ ...jsonOf(row.model, row.choice, machine), benchmark: row.benchmark ?? null })),
          })
        if (names.length > 0) for (const row of rows) showDetail(row, machine, terminal)
        else showTable(rows, machine, terminal)
      }),
    )
  withExamples(catalog, [
    ['infer model catalog', 'every model, best fit first'],
    ['infer model catalog --kind embedding', 'one kind'],
    ['infer model catalog qwen3-8b', 'files, memory, licence and sources of one model'],
    ['infer model catalog --verify', 'compare the catalog with the hub'],
  ])
}

function chosenModels(names: readonly string[], kind: CatalogKind | undefined): readonly CatalogModel[] {
  const models =
    names.length === 0
      ? modelCatalog()
      : names.map(name => {
          const model = findCatalogModel(name)
          if (!model)
            throw usageFailure(
              `The catalog has no model '${name}'.${didYouMean(nearestCatalogNames(name))} See: infer model catalog`,
            )
          return model
        })
  return kind === undefined ? models : models.filter(model => model.kind === kind)
}

const sizeOf = ({ parameters }: CatalogModel): number => parameters ?? 0
/** Whether the GPUs are of use to the built-in engine only after a command. */
const needsSetup = ({ targets }: MachineFacts): boolean => targets.gguf.needsSetup === true
const gpuMemory = ({ targets }: MachineFacts): number => (targets.vllm.kind === 'gpu' ? targets.vllm.capacity : 0)

interface Row {
  model: CatalogModel
  choice: BuildChoice
  /** Of the model with its name in infer.yaml. */
  benchmark: ModelBenchmark | undefined
}

function showTable(rows: readonly Row[], machine: MachineFacts, terminal: Terminal): void {
  terminal.table(
    ['name', 'kind', 'parameters', 'size', 'licence', 'context', 'engine', 'fits this machine'],
    rows.map(({ model, choice, benchmark }) => [
      model.name,
      model.kind,
      parametersText(model),
      buildSize(model, choice),
      model.license.replace(' Community License', '').replace(' Terms of Use', ''),
      model.context === null ? '-' : tokensText(model.context),
      choice.build.engine ?? '-',
      paintByGrade(choice.fit.grade, printable(choice.fit.text + measuredText(benchmark)), terminal),
    ]),
    { optional: ['parameters', 'licence', 'engine', 'context'] },
  )
  const gpus =
    machine.gpus === 0
      ? 'no GPU'
      : `${machine.gpus === 1 ? 'a GPU' : `${machine.gpus} GPUs, the largest`} with ${sizeText(gpuMemory(machine))} for models`
  const setup = needsSetup(machine) ? ` The built-in engine does not use the GPU yet. Run: ${gpuSetup}.` : ''
  terminal.remark(
    `This machine has ${gpus}, and ${sizeText(machine.mainMemory)} of main memory for models.${setup} Add a model with: infer model add <name>`,
  )
}

const measuredText = (benchmark: ModelBenchmark | undefined): string => {
  const rate = benchmarkRate(benchmark)
  return rate === '-' ? '' : `; measured: ${rate} tokens/s`
}

function showDetail({ model, choice, benchmark }: Row, machine: MachineFacts, terminal: Terminal): void {
  const { paint } = terminal
  terminal.print(`${paint.name(model.name)}  ${printable(model.title)}: ${printable(model.summary)}`)
  const facts: [string, string][] = [
    ['kind', `${model.kind} (${model.tasks.join(', ')})`],
    ['parameters', parametersText(model)],
    ['context', model.context === null ? 'unknown' : `${model.context} tokens`],
    ...choice.fit.longer_context.map((text): [string, string] => ['', text]),
    ['licence', model.license],
    ['chosen', choice.build.engine === null ? choice.fit.text : `${choice.build.engine}, ${choice.why}`],
    ['facts from', `${model.sources.join('; ')} (${model.checked})`],
    ['hub', model.hub_checked === null ? 'not checked against the hub; use --verify' : `checked ${model.hub_checked}`],
  ]
  if (benchmark)
    for (const line of benchmarkLines(benchmark, Date.now() / 1_000))
      facts.push([line.startsWith(' ') ? '' : 'measured', line.trim()])
  for (const [about, text] of facts) terminal.print(`  ${paint.faint(about.padEnd(10))}  ${printable(text)}`)
  terminal.table(
    ['  engine', 'quantization', 'size', 'from', 'fits this machine'],
    model.builds.map(build => {
      const fit = fitOf(model, build, machine)
      return [
        `  ${build.engine ?? '-'}`,
        build.quantization ?? (engineFacts(build.engine).reads === 'repository' ? 'BF16' : '-'),
        buildSize(model, { build }),
        build.package ? `PyPI ${build.package.name}` : `hf:${build.repository}`,
        paintByGrade(fit.grade, printable(fit.text), terminal),
      ]
    }),
  )
}

function paintByGrade(grade: Grade, text: string, { paint }: Terminal): string {
  if (grade === 'gpu' || grade === 'processor') return paint.good(text)
  return grade === 'setup' || grade === 'split' || grade === 'slow' || grade === 'missing'
    ? paint.warning(text)
    : paint.faint(text)
}

function jsonOf(model: CatalogModel, { build, fit, why }: BuildChoice, machine: MachineFacts): object {
  return {
    ...model,
    builds: model.builds.map(one => ({ ...one, fit: fitOf(model, one, machine) })),
    chosen: { engine: build.engine, repository: build.repository, quantization: build.quantization, fit, why },
  }
}

async function verify(
  models: readonly CatalogModel[],
  { json, tokenFile }: Options,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<void> {
  const { verifyCatalog } = await import('../../core/models/model-catalog/verify-catalog.ts')
  const hub = hubSettings(hostEnvironment(), { tokenFile })
  const checks = await behindProxy(hostEnvironment(), async () => {
    const all = []
    for await (const check of verifyCatalog(models, { hub, signal })) {
      all.push(check)
      terminal.waiting(`${all.length} repositories checked, the last ${check.repository}`)
    }
    return all
  }).finally(() => terminal.progress(''))
  const colours = { confirmed: terminal.paint.good, changed: terminal.paint.warning, missing: terminal.paint.bad }
  if (json) terminal.json({ endpoint: hub.endpoint, repositories: checks })
  else
    terminal.table(
      ['model', 'result', 'repository', 'note'],
      checks.map(({ model, result, repository, notes }) => [
        model,
        colours[result](result),
        repository,
        printable(notes.join('; ')),
      ]),
    )
  if (checks.some(({ result }) => result !== 'confirmed')) terminal.setExitCode(exitCodes.failed)
}

function parametersText({ parameters, active_parameters: active }: CatalogModel): string {
  if (parameters === null) return '-'
  return active === null ? countText(parameters) : `${countText(parameters)}, ${countText(active)} active`
}

/** Formats a parameter count: `8.2B`, `335M`. */
const countText = (count: number): string =>
  count >= 999.5e6 ? `${(count / 1e9).toFixed(1)}B` : `${Math.round(count / 1e6)}M`

const tokensText = (tokens: number): string => (tokens >= 1024 ? `${Math.round(tokens / 1024)}k` : String(tokens))

/** Formats the download size; `~` marks a size that is estimated from the parameters. */
function buildSize(model: CatalogModel, { build }: Pick<BuildChoice, 'build'>): string {
  const weights = weightBytes(model, build)
  return weights === null ? '-' : `${isSizeEstimated(build) ? '~' : ''}${sizeText(weights + projectorBytes(build))}`
}
