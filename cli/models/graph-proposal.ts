import { existsSync, readdirSync, statSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { homeDirectory } from '../../core/base-directory.ts'
import { hostEnvironment } from '../../core/config.ts'
import { Failure } from '../../core/failure.ts'
import type { Graph } from '../../core/models/comfyui/graph.ts'
import { mappingFault, readGraphFile } from '../../core/models/comfyui/graph-fault.ts'
import { modelFilesIn, proposeMapping } from '../../core/models/comfyui/propose-mapping.ts'
import type { ModelEntry } from '../../core/models/edit.ts'
import { Model } from '../../core/models/model.ts'
import { idFrom } from '../../core/models/propose.ts'
import { parsed } from '../../core/schemas/issues.ts'
import { filesNeed } from '../../gpu/estimate/estimate.ts'
import { comfyuiFolder } from '../../gpu/presets/comfyui.ts'
import { sizeText } from '../terminal/quantities-text.ts'
import { installAdvice, isInstalled } from './engine-programs.ts'
import type { Located } from './locate.ts'
import type { GivenSettings, Proposal } from './proposal.ts'

/** Where people install ComfyUI, the last being that of comfy-cli. */
const usualFolders = () => {
  const home = homeDirectory(hostEnvironment())
  return ['/opt/ComfyUI', join(home, 'ComfyUI'), join(home, 'comfy', 'ComfyUI')]
}

/** Whether the text names a ComfyUI graph, as in `comfyui:workflow.json`. */
const graphPrefix = 'comfyui:'

/** Returns the graph that a text with the prefix names. Throws Failure if it is no graph in API format. */
export function locateGraph(text: string): Located {
  const path = resolve(text.slice(graphPrefix.length))
  if (!existsSync(path)) throw new Failure('invalid_value', `There is no file '${path}'.`)
  readGraphFile(path)
  return { kind: 'graph', path, names: [basename(path, '.json')] }
}

/** Proposes a model that runs a ComfyUI graph: its tasks and how requests are written into it. */
export function proposeGraph(
  { path, names }: Located,
  given: GivenSettings,
  { taken, dataDir }: { taken: ReadonlySet<string>; dataDir: string },
): Proposal {
  const graph = readGraphFile(path)
  const { task, inputs, outputs, missing } = proposeMapping(graph)
  const server = serverOf(given.comfyui, dataDir)
  const bytes = server.folder === undefined ? undefined : modelBytes(graph, join(server.folder, 'models'))
  const memory = given.memory ?? (bytes === undefined ? undefined : sizeText(filesNeed(bytes, 'gpu')).replace(' ', ''))
  const entry: ModelEntry = {
    id: given.id ?? idFrom(names, null, taken),
    ...server.entry,
    source: path,
    tasks: given.task ?? [task],
    ...(memory === undefined || server.folder === undefined ? {} : { memory }),
    comfyui: { inputs, ...(outputs.length > 0 ? { outputs } : {}) },
  }
  const model = parsed(Model, entry)
  const fault = mappingFault(graph, model)
  const obstacle =
    outputs.length === 0
      ? 'The graph has no node that saves files, such as SaveImage. Add one and export it again.'
      : fault && `The mapping is not complete: ${fault} Write the model into infer.yaml yourself.`
  const mapped = Object.entries(inputs).map(([name, target]): [string, string] => [name, [target].flat().join(', ')])
  return {
    entry,
    memory: model.memory ?? null,
    obstacle: obstacle ?? null,
    advice: server.missing === undefined ? [] : [server.missing],
    facts: [
      ['source', path],
      ['engine', server.text],
      ['tasks', `${model.tasks.join(', ')}${given.task ? '' : ': by the nodes that load and save files'}`],
      ...mapped,
      ['outputs', outputs.map(id => `${id} (${graph[id]!.class_type})`).join(', ') || 'none'],
      ...(missing.length > 0
        ? [['not found', `${missing.join(', ')}: requests that set them will be refused`] as [string, string]]
        : []),
      ...(server.folder === undefined
        ? []
        : [
            ['memory', memory ?? 'unknown: the engine gets a device of its own unless you set --memory'] as [
              string,
              string,
            ],
          ]),
    ],
  }
}

/** How the ComfyUI is started or reached. */
interface Server {
  entry: Pick<ModelEntry, 'engine' | 'url' | 'command'>
  /** Its installation, if infer starts it. */
  folder?: string
  text: string
  /** How it is installed, as sentences, where it is not. */
  missing?: string
}

/**
 * Returns the server that the option names: an address or the folder of an installation; else what `infer engine setup`
 * has installed, an installation in a usual folder, or what that command would install.
 */
function serverOf(given: string | undefined, dataDir: string): Server {
  if (given !== undefined && /^https?:\/\//i.test(given))
    return { entry: { engine: 'remote', url: given }, text: `ComfyUI at ${given}` }
  const path = hostEnvironment().PATH ?? ''
  if (given === undefined && isInstalled('comfyui', { dataDir, path, tasks: [] }))
    return { entry: { engine: 'comfyui' }, folder: comfyuiFolder(dataDir), text: 'ComfyUI of infer engine setup' }
  const isInstallation = (one: string) => existsSync(join(one, 'main.py'))
  const folder = given === undefined ? usualFolders().find(isInstallation) : resolve(given)
  if (folder === undefined)
    return {
      entry: { engine: 'comfyui' },
      folder: comfyuiFolder(dataDir),
      text: 'ComfyUI of infer engine setup, which is not installed yet',
      missing: `${installAdvice('comfyui', [])}. Or say where it is, if not in ${usualFolders().join(', ')}: --comfyui <folder>, or --comfyui http://127.0.0.1:8188 for one that runs.`,
    }
  if (!isInstallation(folder))
    throw new Failure('invalid_value', `The folder '${folder}' has no main.py, so it is no installation of ComfyUI.`)
  const python =
    ['venv', '.venv'].map(name => join(folder, name, 'bin', 'python')).find(file => existsSync(file)) ?? 'python3'
  return {
    entry: { engine: 'comfyui', command: [python, join(folder, 'main.py')] },
    folder,
    text: `ComfyUI in ${folder}`,
  }
}

/** Returns the bytes of the model files that a graph names; undefined if one of them is not in the folder. */
function modelBytes(graph: Graph, folder: string): number | undefined {
  const named = modelFilesIn(graph).map(name => basename(name.replaceAll('\\', '/')))
  if (named.length === 0 || !existsSync(folder)) return undefined
  const sizes = new Map<string, number>()
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' }))
    if (named.includes(basename(file))) sizes.set(basename(file), statSync(join(folder, file)).size)
  return named.every(name => sizes.has(name)) ? [...sizes.values()].reduce((all, one) => all + one, 0) : undefined
}
