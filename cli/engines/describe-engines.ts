import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { EngineList, EngineSetupView, EngineView, InstalledVersion } from '../../core/models/engine-setup.ts'
import { Model } from '../../core/models/model.ts'
import { impliedBy, modelTasks, operationsFor, type Task } from '../../core/schemas/task.ts'
import type { GraphicsCards } from '../../gpu/devices/graphics-cards.ts'
import { environmentsFolder } from '../../gpu/launcher/environment.ts'
import type { Preset } from '../../gpu/presets/preset.ts'
import { presets } from '../../gpu/presets/presets.ts'
import { programOf } from '../models/engine-programs.ts'
import { type EnvironmentKind, environmentKinds, processorOnlyBytes } from './environment-kinds.ts'
import { releaseKinds } from './releases/release-kinds.ts'

/** The tasks that a model can name. */
const namedTasks = modelTasks.filter(task => impliedBy[task] === undefined)

/** Describes the engines that this machine can start, and the setups that install some of them. */
export function describeEngines({
  dataDir,
  path,
  cards,
  installed,
}: {
  dataDir: string
  /** The PATH of the environment. */
  path: string
  cards: GraphicsCards
  /** The installed versions of each setup, by its name. */
  installed: ReadonlyMap<string, readonly InstalledVersion[]>
}): EngineList {
  const hasCards = canCompute(cards)
  const setups = allSetups(hasCards).map(setup => {
    const versions = installed.get(setup.name) ?? []
    return { ...setup, ...stateOf(versions), versions }
  })
  const engines = [...presets.values()]
    // The others are a command of a model, or run elsewhere.
    .filter(({ name, runsOn }) => name !== 'custom' && runsOn !== 'elsewhere')
    .map(preset => {
      const own = setups.filter(one => one.engines.includes(preset.name))
      return engineView(preset, own, { dataDir, path, hasCards, cards })
    })
  return { engines, setups: setups.map(({ engines: _engines, ...setup }) => setup) }
}

/** Whether a card is here that engines for GPUs may use. */
const canCompute = ({ nvidia, bus }: GraphicsCards): boolean =>
  nvidia.length > 0 || bus.some(({ maker, integrated }) => maker !== 'nvidia' && !integrated)

/** `setups`: those that install it, or a part of it. */
function engineView(
  preset: Preset,
  setups: readonly EngineSetupView[],
  { dataDir, path, hasCards, cards }: { dataDir: string; path: string; hasCards: boolean; cards: GraphicsCards },
): EngineView {
  const installation = preset.installation?.(namedTasks)
  const own = join(environmentsFolder(dataDir), preset.name)
  const program = installation?.program
    ? programOf(preset, { dataDir, path, tasks: namedTasks })
    : installation && existsSync(own)
      ? own
      : undefined
  const state = installation === undefined ? 'built_in' : program === undefined ? 'missing' : 'installed'
  const names = setups.map(({ name }) => name)
  const present = setups.filter(one => one.state !== 'missing')
  const ofSetup = present.find(({ name }) => program?.startsWith(`${join(environmentsFolder(dataDir), name)}/`))
  return {
    engine: preset.name,
    state,
    version: ofSetup?.version ?? null,
    path: program ?? null,
    origin:
      state === 'built_in'
        ? 'infer'
        : program === undefined
          ? null
          : ofSetup
            ? 'setup'
            : program.startsWith(`${environmentsFolder(dataDir)}/`)
              ? 'user'
              : 'system',
    runs_on: preset.runsOn === 'elsewhere' ? 'either' : preset.runsOn,
    tasks: tasksOf(preset),
    blocked: preset.runsOn === 'gpu' && !hasCards ? withoutCards(preset.name, cards) : null,
    advice: adviceFor(state, names, present, installation?.advice),
    setups: names,
  }
}

const withoutCards = (engine: string, { fault }: GraphicsCards): string =>
  `The engine '${engine}' needs a GPU, and this machine has none that works.${fault === null ? '' : ` ${fault}`}`

function adviceFor(
  state: EngineView['state'],
  names: readonly string[],
  present: readonly EngineSetupView[],
  advice: string | undefined,
): string | null {
  const old = present.find(one => one.state === 'outdated')
  const part = present.find(one => one.state === 'incomplete')
  if (part) return `Its installation was interrupted. Continue it with: infer engine setup ${part.name}`
  if (old) return `It was made for another infer. Update it with: infer engine update ${old.name}`
  if (state !== 'missing') return null
  if (names.length > 1) return `Install it with: ${names.map(name => `infer engine setup ${name}`).join(' or ')}`
  return advice ?? null
}

/** The tasks for which an engine has a route. */
function tasksOf(preset: Preset): Task[] {
  const model = Model.parse({ id: 'any', engine: preset.name, source: '/any', tasks: namedTasks })
  const { routes } = preset.traits(model)
  return namedTasks.filter(task => operationsFor(task, model.tasks).some(one => routes[one] !== undefined))
}

function stateOf(versions: readonly InstalledVersion[]): Pick<EngineSetupView, 'state' | 'version'> {
  const { state, version } = versions.find(one => one.is_current) ?? versions[0] ?? { state: 'missing', version: null }
  return { state, version }
}

type Setup = Omit<EngineSetupView, 'state' | 'version' | 'versions'> & { engines: readonly string[] }

const environmentTitles: Readonly<Record<EnvironmentKind['name'], string>> = {
  python: 'Images, videos, embeddings and chat by PyTorch',
  speech: 'Speech and transcription, with two small models',
  vllm: 'vLLM',
  sglang: 'SGLang',
  comfyui: 'ComfyUI',
}

/** The environments whose PyTorch can be one for the processor: `--cpu`. */
const hasProcessorBuild: ReadonlySet<string> = new Set(['python', 'comfyui'])

function allSetups(hasCards: boolean): Setup[] {
  const releases = Object.values(releaseKinds).map(
    ({ name, title, repository, license }): Setup => ({
      name,
      title: `${name} of ${title}`,
      source: `github.com/${repository}`,
      license,
      bytes: null,
      for_processor: false,
      engines: [name],
    }),
  )
  const environments = Object.values<EnvironmentKind>(environmentKinds).map(
    ({ name, source, bytes, engines }): Setup => {
      const forProcessor = !hasCards && hasProcessorBuild.has(name)
      return {
        name,
        title: environmentTitles[name],
        source: source ? new URL(source.repository).host + new URL(source.repository).pathname : 'PyPI',
        license: source?.license ?? null,
        bytes: forProcessor ? processorOnlyBytes : bytes,
        for_processor: forProcessor,
        engines,
      }
    },
  )
  return [...releases, ...environments]
}
