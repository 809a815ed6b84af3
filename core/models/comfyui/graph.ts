import { invalidValue } from '../../failure.ts'
import { isObject } from '../../json.ts'

/** One node of a graph in API format. An input is a value, or a link `[node, output]`. */
export interface GraphNode {
  class_type: string
  inputs: Record<string, unknown>
  title?: string
}

/** A ComfyUI graph in API format, by node id. */
export type Graph = Record<string, GraphNode>

/** Larger files are not graphs. */
export const maxGraphBytes = 4 << 20

/** Whether the value of an input is a link to the output of another node. */
export const isLink = (value: unknown): value is [node: string, output: number] =>
  Array.isArray(value) && value.length === 2 && typeof value[0] === 'string' && typeof value[1] === 'number'

/** Parses a graph in API format. Throws Failure `invalid_value` that names the file. */
export function parseGraph(text: string, path: string): Graph {
  const wrong = (what: string) => invalidValue(`The graph ${path} ${what}`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw wrong(`is not JSON: ${(cause as Error).message}. Export it again from ComfyUI.`)
  }
  if (isObject(value) && Array.isArray(value.nodes) && Array.isArray(value.links))
    throw wrong(
      'is in the format of the ComfyUI editor, which only the editor can run. Open it in ComfyUI and export it in API format: menu Workflow, "Export (API)"; in old versions "Save (API Format)" after turning on the dev mode in the settings.',
    )
  // The body of `POST /prompt` contains the graph in a member.
  const nodes = isObject(value) && isObject(value.prompt) && !('class_type' in value.prompt) ? value.prompt : value
  if (!isObject(nodes) || Object.keys(nodes).length === 0)
    throw wrong('is not a ComfyUI graph in API format: an object with a member for each node.')
  return Object.fromEntries(
    Object.entries(nodes).map(([id, node]) => {
      if (!isObject(node) || !isObject(node.inputs))
        throw wrong(
          `is not a ComfyUI graph in API format: its member '${id}' is not a node with 'class_type' and 'inputs'.`,
        )
      if (typeof node.class_type !== 'string')
        throw wrong(
          `has a node '${id}' without class_type: ComfyUI did not know this node when the file was exported. Install its custom node and export the graph again.`,
        )
      const { title } = isObject(node._meta) ? node._meta : {}
      const { class_type, inputs } = node
      return [id, { class_type, inputs, ...(typeof title === 'string' ? { title } : {}) }]
    }),
  )
}

/** Names a node in messages: `node '3' (KSampler)`. */
export const nodeText = (id: string, { class_type }: Pick<GraphNode, 'class_type'>): string =>
  `node '${id}' (${class_type})`
