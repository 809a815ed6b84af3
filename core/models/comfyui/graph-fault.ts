import { existsSync, readFileSync, statSync } from 'node:fs'
import { Failure, invalidValue } from '../../failure.ts'
import { nearest } from '../../nearest.ts'
import { isSlugTask, mediaFor, type Task } from '../../schemas/task.ts'
import type { Model } from '../model.ts'
import { type Graph, isLink, maxGraphBytes, nodeText, parseGraph } from './graph.ts'
import { graphInputs, type InputTarget, inputTargets, isFurtherImage, targetText } from './settings.ts'

/** Reads a graph file. Throws Failure `invalid_value` that names the file. For the configuration, not for requests. */
export function readGraphFile(path: string): Graph {
  let text: string
  try {
    if (statSync(path).size > maxGraphBytes)
      throw new Error(`it has more than ${maxGraphBytes >> 20} MiB, so it is not a graph`)
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    throw invalidValue(`The graph ${path} cannot be read: ${(cause as Error).message}.`)
  }
  return parseGraph(text, path)
}

/**
 * Returns why the graph of a model cannot be used, as a sentence; undefined for models without a graph, and if it
 * can. Reads the file; one that is missing fails the jobs, as a missing model file does.
 */
export function graphFault(model: Model): string | undefined {
  if (!model.comfyui) return undefined
  if (model.source === undefined) return "'comfyui' needs 'source', the file of the graph in API format."
  if (!existsSync(model.source)) return undefined
  try {
    const fault = mappingFault(readGraphFile(model.source), model)
    return fault === undefined ? undefined : `The graph ${model.source} does not fit: ${fault}`
  } catch (thrown) {
    return Failure.from(thrown).message
  }
}

/** Returns the parameters that a graph must take for a task, because every request has them. */
const required = (task: Task): readonly string[] =>
  !isSlugTask(task) ? [] : mediaFor(task).length > 0 ? mediaFor(task) : ['prompt']

/** Returns why the mapping of a model does not fit its graph, as a sentence; undefined if it fits. */
export function mappingFault(
  graph: Graph,
  { comfyui, tasks, extra_params }: Pick<Model, 'comfyui' | 'tasks' | 'extra_params'>,
): string | undefined {
  if (!comfyui) return undefined
  for (const name of Object.keys(comfyui.inputs)) {
    const known = (graphInputs as readonly string[]).includes(name) || extra_params.includes(name)
    if (!known && !isFurtherImage(name)) {
      const near = nearest(name, [...graphInputs, ...extra_params])
      return `'comfyui.inputs' names the parameter '${name}', which does not exist.${near ? ` Did you mean '${near}'?` : ''} A parameter of your own must be listed in 'extra_params'.`
    }
    for (const target of inputTargets(comfyui, name)) {
      const fault = targetFault(graph, target)
      if (fault) return `'comfyui.inputs.${name}' is '${targetText(target)}', but ${fault}`
    }
  }
  const missing = comfyui.outputs?.find(id => !Object.hasOwn(graph, id))
  if (missing !== undefined)
    return `'comfyui.outputs' names the node '${missing}', which the graph does not have. Nodes that save files: ${list(savingNodes(graph))}.`
  for (const task of tasks)
    for (const name of required(task))
      if (!Object.hasOwn(comfyui.inputs, name))
        return `the task '${task}' needs '${name}' in 'comfyui.inputs': name the input of the node that takes it.`
  return undefined
}

function targetFault(graph: Graph, { node, input }: InputTarget): string | undefined {
  const found = Object.hasOwn(graph, node) ? graph[node]! : undefined
  if (!found) return `the graph has no node '${node}'. Its nodes: ${list(nodesOf(graph))}.`
  if (!Object.hasOwn(found.inputs, input))
    return `${nodeText(node, found)} has no input '${input}'. Its inputs: ${list(Object.keys(found.inputs))}.`
  const value = found.inputs[input]
  if (!isLink(value)) return undefined
  const from = graph[value[0]]
  return `that input is linked to ${from ? nodeText(value[0], from) : `node '${value[0]}'`}. Name an input of that node.`
}

const nodesOf = (graph: Graph): string[] => Object.entries(graph).map(([id, { class_type }]) => `${id} (${class_type})`)

const savingNodes = (graph: Graph): string[] =>
  Object.entries(graph).flatMap(([id, { class_type, inputs }]) =>
    'filename_prefix' in inputs ? `${id} (${class_type})` : [],
  )

const list = (names: readonly string[]): string =>
  names.length === 0 ? 'none' : `${names.slice(0, 30).join(', ')}${names.length > 30 ? ', …' : ''}`
