import { boundsOf } from '../../../components/graph/bounds.ts'
import { detourOf, type PlacedBox } from '../../../components/graph/detours.ts'
import type { Box, Places } from '../../../components/graph/layout.ts'
import { editorText } from '../../../text/editor.ts'
import { taskName } from '../../../text/tasks.ts'
import {
  addEdge,
  addNode,
  connect,
  disconnect,
  disconnectList,
  type Edit,
  moveNode,
  parameterReference,
  removeEdge,
  takeList,
  together,
} from './edits.ts'
import type { NestedWorkflows } from './nested.ts'
import { kindOfParameter } from './port-kinds.ts'
import {
  inputHandle,
  inputOfHandle,
  listHandle,
  type NodeLink,
  orderHandles,
  outputHandle,
  outputOfHandle,
  type Ports,
  portsOf,
} from './ports.ts'
import { conditionEdgesOf, listLinksOf, outputReference, valueLinksOf } from './references.ts'
import { resultOf } from './results.ts'
import { firstInputs, type TaskFacts } from './schema.ts'
import { freeId } from './source.ts'
import type { Workflow, WorkflowNode } from './workflow-document.ts'

/** The card of the parameters; no node can have this id, because ids hold no quotes. */
export const parametersId = "'parameters"

/** A card that has a size and no place yet. */
interface UnplacedCard extends Box {
  /** Undefined: the card of the parameters. */
  node: WorkflowNode | undefined
  ports: Ports
}
export interface GraphCard extends UnplacedCard {
  at: { x: number; y: number }
}
/** Where a card stands, in pixels of the graph. */
export const boxOfCard = ({ at, width, height }: GraphCard): PlacedBox => ({ ...at, width, height })

export interface GraphEdge {
  id: string
  from: string
  fromPort: string
  to: string
  toPort: string
  /** The reference that makes the edge; undefined for an order without a value. */
  link: NodeLink | undefined
}

/**
 * The cards and edges of a workflow; `expanded` has the ports that a person unfolded, `nested` the workflows that nodes run. With `previews` there is space for
 * results below the cards.
 */
export function graphOf(
  workflow: Pick<Workflow, 'nodes' | 'edges' | 'parameters'>,
  tasks: ReadonlyMap<string, TaskFacts>,
  expanded: ReadonlySet<string>,
  previews: boolean,
  nested: NestedWorkflows = new Map(),
): { cards: UnplacedCard[]; edges: GraphEdge[] } {
  const { nodes, parameters } = workflow
  const links: NodeLink[] = [...valueLinksOf(workflow), ...listLinksOf(workflow)]
  const ids = new Set(nodes.map(({ id }) => id))
  const declared = new Set(parameters.map(({ name }) => name))
  for (const { from, output } of links) if (from === undefined) declared.add(output)
  const types = new Map(parameters.map(({ name, parameter }) => [name, parameter.type]))
  const outputs = [...declared].map(path => ({ path, name: path, carries: kindOfParameter(types.get(path)) }))
  const edges: GraphEdge[] = [
    ...links
      .filter(({ from }) => from === undefined || ids.has(from))
      .map(link => ({
        id: `${link.from ?? ''} ${link.output} ${link.to} ${link.input ? JSON.stringify(link.input) : listHandle}`,
        from: link.from ?? parametersId,
        fromPort: outputHandle(link.output),
        to: link.to,
        toPort: link.input ? inputHandle(link.input) : listHandle,
        link,
      })),
    ...[...workflow.edges, ...conditionEdgesOf(workflow)]
      .filter(({ from, to }) => ids.has(from) && ids.has(to))
      // An order that a reference gives anyway is no line of its own.
      .filter(({ from, to }) => !links.some(link => link.from === from && link.to === to))
      .map(({ from, to }) => ({
        id: `order ${from} ${to}`,
        from,
        fromPort: orderHandles.before,
        to,
        toPort: orderHandles.after,
        link: undefined,
      })),
  ]
  const unique = [...new Map(edges.map(edge => [edge.id, edge])).values()]
  const taken = Map.groupBy(links, ({ to }) => to)
  const given = Map.groupBy(links, ({ from }) => from)
  const cards = nodes.map(node => {
    const own = [...(taken.get(node.id) ?? []), ...(given.get(node.id) ?? [])]
    const all = { inputs: expanded.has(`in ${node.id}`), outputs: expanded.has(`out ${node.id}`) }
    return cardOf(node, { tasks, nested, links: own, all, previews })
  })
  if (outputs.length === 0) return { cards, edges: unique }
  const ports = { inputs: [], outputs }
  return { cards: [{ id: parametersId, node: undefined, ports, ...sizeOf(ports) }, ...cards], edges: unique }
}

interface CardFacts {
  tasks: ReadonlyMap<string, TaskFacts>
  nested: NestedWorkflows
  /** The links to and from the node. */
  links: readonly NodeLink[]
  all: { inputs: boolean; outputs: boolean }
  previews: boolean
}

/** The card that was made last of a node, and of what. An edit leaves most of hundreds of nodes as they are. */
const made = new WeakMap<WorkflowNode, { of: readonly unknown[]; card: UnplacedCard }>()

function cardOf(node: WorkflowNode, { tasks, nested, links, all, previews }: CardFacts): UnplacedCard {
  const task = tasks.get(node.task)
  const of = [task, nested.get(node.id), all.inputs, all.outputs, previews, JSON.stringify(links)]
  const known = made.get(node)
  if (known?.of.every((one, at) => one === of[at])) return known.card
  const ports = portsOf(node, task, resultOf(node, { tasks, nested }), links, all)
  const size = sizeOf(ports, previews ? (task?.category ?? 'text') : undefined)
  const card = { id: node.id, node, ports, ...size }
  made.set(node, { of, card })
  return card
}

/**
 * The cards that have a place: the one that people gave them, else that of `places`. The card of the parameters, which
 * nobody can place, stands left of the others when all of them were placed by people.
 */
export function placedCards(cards: readonly UnplacedCard[], places: Places): GraphCard[] {
  const placed = cards.flatMap((card): GraphCard[] => {
    const at = card.node?.position ?? places.get(card.id)
    return at ? [{ ...card, at }] : []
  })
  const parameters = cards.find(({ node }) => !node)
  if (!parameters || placed.length === 0 || placed.some(({ node }) => !node)) return placed
  const { x, y } = boundsOf(placed.map(boxOfCard))
  return [{ ...parameters, at: { x: x - cardWidth - 96, y } }, ...placed]
}

/** Where a new node stands beside nodes that people have placed; undefined while all are arranged automatically. */
export function placeForNode(nodes: readonly WorkflowNode[]): { x: number; y: number } | undefined {
  const placed = nodes.flatMap(({ position }) => (position ? [position] : []))
  if (placed.length === 0) return undefined
  return { x: Math.max(...placed.map(({ x }) => x)) + cardWidth + 96, y: Math.min(...placed.map(({ y }) => y)) }
}

/** The id that a node gets: the last word of the name of its task, such as `image` for `Text to image`. */
const idForTask = (name: string): string => name.toLowerCase().replace(/^.* /, '')

/** Messages with which a new node can be run at once. */
const firstMessages = [{ role: 'user', content: editorText.firstMessage }]

/** Where a card stands, by the id of its node. */
export type SeenPlaces = readonly { id: string; at: { x: number; y: number } }[]

/**
 * Adds a node for a task. `drop` says where a person put it: then the others stay where they are `seen`. Without it the
 * node stands beside those that people have placed, or is arranged with all others. `isJoined`: its message will be what
 * another node gives.
 */
export function newNode(
  task: TaskFacts,
  nodes: readonly WorkflowNode[],
  drop?: { at: { x: number; y: number }; seen: SeenPlaces },
  isJoined = false,
): { id: string; edit: Edit } {
  const id = freeId(idForTask(taskName(task.id)), new Set(nodes.map(node => node.id)))
  const place = drop?.at ?? placeForNode(nodes)
  const [model] = task.models
  const node = {
    ...(model === undefined ? {} : { model_id: model }),
    task: task.id,
    inputs: {
      ...firstInputs(task.input_schema),
      ...(task.form.panel === 'conversation'
        ? { messages: isJoined ? [{ role: 'user', content: '' }] : firstMessages }
        : {}),
    },
  }
  const unplaced = new Set(nodes.filter(({ position }) => !position).map(one => one.id))
  const kept = (drop?.seen ?? []).filter(one => unplaced.has(one.id)).map(({ id, at }) => moveNode(id, at.x, at.y))
  return { id, edit: together(...kept, addNode(id, node), ...(place ? [moveNode(id, place.x, place.y)] : [])) }
}

// The sizes of a card in pixels, as `node-card.tsx` draws it.
export const cardWidth = 248
const headerHeight = 54
const portHeight = 24
const unfoldHeight = 28
export const portSize = 12
/** The preview of a result below a card, by the category of the task. */
const previewHeights: Record<string, number> = { image: 162, video: 162, audio: 74, text: 82 }

/** The size of a card; with a category there is space for the preview of a result. */
export const sizeOf = ({ list, inputs, outputs }: Ports, preview?: string) => ({
  width: cardWidth,
  height:
    headerHeight +
    2 * unfoldHeight +
    portHeight * (inputs.length + outputs.length + (list === undefined ? 0 : 1)) +
    (preview === undefined ? 0 : (previewHeights[preview] ?? 0)),
})

/** Where the ports of a card are: the distance of their middle from the top. */
export function portPlaces({ list, inputs, outputs }: Ports, isNode: boolean) {
  const header = isNode ? headerHeight : headerHeight - 16
  const top = header + (list === undefined ? 0 : portHeight)
  const between = top + inputs.length * portHeight + (isNode ? unfoldHeight : 0)
  const middle = (at: number) => (at + 0.5) * portHeight
  return [
    ...(isNode
      ? [
          { id: orderHandles.after, y: header / 2, isOutput: false },
          { id: orderHandles.before, y: header / 2, isOutput: true },
        ]
      : []),
    ...(list === undefined ? [] : [{ id: listHandle, y: header + middle(0), isOutput: false }]),
    ...inputs.map(({ path }, at) => ({ id: inputHandle(path), y: top + middle(at), isOutput: false })),
    ...outputs.map(({ path }, at) => ({ id: outputHandle(path), y: between + middle(at), isOutput: true })),
  ]
}

/** The heights at which edges pass the cards between their ends, by the ids of the edges. */
export function detoursOf(cards: readonly GraphCard[], edges: readonly GraphEdge[]): ReadonlyMap<string, number> {
  const byId = new Map(cards.map(card => [card.id, { card, ports: portPlaces(card.ports, card.node !== undefined) }]))
  const boxes = cards.map(card => ({ id: card.id, ...boxOfCard(card) }))
  const found = new Map<string, number>()
  for (const { id, from, fromPort, to, toPort } of edges) {
    const [source, target] = [byId.get(from), byId.get(to)]
    const [begin, end] = [
      source?.ports.find(port => port.id === fromPort),
      target?.ports.find(port => port.id === toPort),
    ]
    if (!source || !target || !begin || !end) continue
    const detour = detourOf(
      { x: source.card.at.x + source.card.width, y: source.card.at.y + begin.y },
      { x: target.card.at.x, y: target.card.at.y + end.y },
      boxes.filter(box => box.id !== from && box.id !== to),
    )
    if (detour !== undefined) found.set(id, detour)
  }
  return found
}

/** The edit that a drag from port to port means; undefined if it means nothing. */
export function editOfConnection(
  source: string,
  sourceHandle: string | null,
  target: string,
  targetHandle: string | null,
): Edit | undefined {
  if (sourceHandle === null || targetHandle === null) return undefined
  if (targetHandle === orderHandles.after || sourceHandle === orderHandles.before)
    return source === parametersId ? undefined : addEdge(source, target)
  const output = outputOfHandle(sourceHandle)
  const reference = source === parametersId ? parameterReference(output) : outputReference(source, output)
  if (targetHandle === listHandle) return takeList(target, reference)
  return connect(target, inputOfHandle(targetHandle), reference)
}

/** The edit that removing an edge means. */
export function editOfCut({ from, to, link }: GraphEdge): Edit {
  if (!link) return removeEdge(from, to)
  const { input, source } = link
  return together(input ? disconnect(to, input, source) : disconnectList(to, source), removeEdge(from, to))
}
