import { existsSync, readFileSync, statSync } from 'node:fs'
import { Failure } from '../../failure.ts'
import type { Model } from '../model.ts'
import { type Graph, maxGraphBytes, parseGraph } from './graph.ts'
import { mappingFault } from './mapping-fault.ts'

/** Reads a graph file. Throws Failure `invalid_value` that names the file. For the configuration, not for requests. */
export function readGraphFile(path: string): Graph {
  let text: string
  try {
    if (statSync(path).size > maxGraphBytes)
      throw new Error(`it has more than ${maxGraphBytes >> 20} MiB, so it is not a graph`)
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    throw new Failure('invalid_value', `The graph ${path} cannot be read: ${(cause as Error).message}.`)
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
