import { type Document, isCollection, isMap, isScalar, isSeq, type Node, type Pair } from 'yaml'
import { type Reference, referenceText } from '../../../../../../core/workflows/references.ts'
import { editorText } from '../../../text/editor.ts'
import { isReference, outputText, referencesOfText, replaceInDefault, replaceReferences } from './references.ts'
import type { Path } from './workflow-document.ts'

/** A change of a document. Comments stay, because only the nodes in question are touched. */
export type Edit = (document: Document) => void

/** Makes a function that returns an edit of one that does it. */
const edit =
  <Given extends unknown[]>(act: (document: Document, ...given: Given) => void) =>
  (...given: Given): Edit =>
  document =>
    act(document, ...given)

/** The document does not allow the change; the message says why. */
export class EditFault extends Error {
  override name = 'EditFault'
}

const nodesPath = ['dag', 'nodes'] as const
const edgesPath = ['dag', 'edges'] as const
export const nodePath = (id: string): Path => [...nodesPath, id]

/** Creates the mappings of a path that are missing or empty. */
export function makeMaps(document: Document, path: Path): void {
  for (let length = 1; length <= path.length; length++) {
    const here = path.slice(0, length)
    const node = document.getIn(here, true) as Node | undefined
    if (isCollection(node)) {
      // `{}` would grow on one line.
      if (node.items.length === 0) node.flow = false
    } else if (node === undefined || (isScalar(node) && node.value === null))
      document.setIn(here, document.createNode(typeof path[length] === 'number' ? [] : {}))
    else throw new EditFault(editorText.notMapping(outputText(here)))
  }
}

/** Sets a value; undefined removes it, and the mapping that it leaves empty below the fields of a node. */
export const setValue = edit((document, path: Path, value: unknown) => {
  if (value === undefined) return removeValue(path)(document)
  makeMaps(document, path.slice(0, -1))
  const before = document.getIn(path, true)
  if (isScalar(before) && (value === null || typeof value !== 'object')) before.value = value
  else document.setIn(path, document.createNode(value))
})

const removeValue = edit((document, path: Path) => {
  if (document.hasIn(path)) document.deleteIn(path)
})

export const moveNode = edit((document, id: string, x: number, y: number) => {
  const at = [...nodePath(id), 'position']
  setValue([...at, 'x'], Math.round(x))(document)
  setValue([...at, 'y'], Math.round(y))(document)
  const position = document.getIn(at, true)
  if (isMap(position)) position.flow = true
})

/** Does several edits as one. */
export const together =
  (...edits: readonly Edit[]): Edit =>
  document => {
    for (const one of edits) one(document)
  }

export const addNode = (id: string, node: Record<string, unknown>): Edit => setValue(nodePath(id), node)

/** Adds a node that says the same as another, at a place of its own. */
export const duplicateNode = edit((document, id: string, copy: string) => {
  const original = document.getIn(nodePath(id))
  if (!isMap(original)) return
  const { position: _, ...node } = original.toJS(document) as Record<string, unknown>
  addNode(copy, node)(document)
})

/** Removes nodes with their edges, and the inputs that are nothing but a reference to one of them. */
export const removeNodes = edit((document, ids: readonly string[]) => {
  for (const id of ids) removeValue(nodePath(id))(document)
  keepEdges(({ from, to }) => !ids.includes(from) && !ids.includes(to))(document)
  removeInputs(document, ({ root, path }) => root === 'nodes' && ids.includes(String(path[0])))
})

/** Gives a node another id, in its edges and in all references too. */
export const renameNode = edit((document, id: string, next: string) => {
  if (next === id) return
  if (document.hasIn(nodePath(next))) throw new EditFault(editorText.idTaken(next))
  renameKey(document, nodesPath, id, next)
  const edges = document.getIn(edgesPath)
  if (isSeq(edges))
    for (const edge of edges.items)
      if (isMap(edge)) for (const end of ['from', 'to']) if (edge.get(end) === id) edge.set(end, next)
  renameInReferences(document, 'nodes', id, next)
})

export const renameParameter = edit((document, name: string, next: string) => {
  if (next === name) return
  if (document.hasIn(['parameters', next])) throw new EditFault(editorText.parameterTaken(next))
  renameKey(document, ['parameters'], name, next)
  renameInReferences(document, 'input', name, next)
})

/** Gives a parameter another type, and its default too where it is plain how; else the server says what is wrong. */
export const setParameterType = edit((document, name: string, type: string) => {
  setValue(['parameters', name, 'type'], type)(document)
  const at = ['parameters', name, 'default']
  const before = document.getIn(at)
  if (before !== undefined && typeof before !== 'object') setValue(at, asType(before, type))(document)
})

function asType(value: unknown, type: string): unknown {
  const text = String(value)
  if (type === 'number' || type === 'integer') {
    const number = text.trim() === '' ? Number.NaN : Number(text)
    return Number.isNaN(number) || (type === 'integer' && !Number.isInteger(number)) ? value : number
  }
  if (type === 'boolean') return text === 'true' || (text === 'false' ? false : value)
  return type === 'array' || type === 'object' ? value : text
}

export const removeParameter = edit((document, name: string) => {
  removeValue(['parameters', name])(document)
  const left = document.get('parameters')
  // An empty mapping would forbid all parameters that undeclared ones may be.
  if (isMap(left) && left.items.length === 0) document.delete('parameters')
  removeInputs(document, ({ root, path }) => root === 'input' && String(path[0]) === name)
})

export const addEdge = edit((document, from: string, to: string) => {
  if (from === to) throw new EditFault(editorText.afterItself)
  makeMaps(document, ['dag'])
  const edges = document.getIn(edgesPath)
  if (!isSeq(edges)) return document.setIn(edgesPath, document.createNode([{ from, to }]))
  if (edges.items.some(edge => isMap(edge) && edge.get('from') === from && edge.get('to') === to)) return
  if (edges.items.length === 0) edges.flow = false
  edges.add(document.createNode({ from, to }))
})

export const removeEdge = (from: string, to: string): Edit => keepEdges(edge => edge.from !== from || edge.to !== to)

const keepEdges = edit((document, keep: (edge: { from: string; to: string }) => boolean) => {
  const edges = document.getIn(edgesPath)
  if (!isSeq(edges)) return
  edges.items = edges.items.filter(
    edge => !isMap(edge) || keep({ from: String(edge.get('from')), to: String(edge.get('to')) }),
  )
  if (edges.items.length === 0) document.deleteIn(edgesPath)
})

/**
 * Lets an input take a value: it replaces nothing or another reference, and is appended to a text. `path` is the path in
 * the inputs of the node.
 */
export const connect = edit((document, to: string, path: Path, reference: string) => {
  const at = [...nodePath(to), 'inputs', ...path]
  const before = document.getIn(at)
  const text = typeof before === 'string' ? before : ''
  if (text.includes(reference)) return
  const keeps = text.trim() !== '' && !isReference(text)
  setValue(at, keeps ? `${text.trimEnd()} ${reference}` : reference)(document)
})

/** Takes a reference out of an input; an input that is nothing else is removed. */
export const disconnect = edit((document, to: string, path: Path, source: string) => {
  const at = [...nodePath(to), 'inputs', ...path]
  const before = document.getIn(at)
  if (typeof before !== 'string') return
  const left = replaceReferences(before, reference => (reference.source === source ? null : undefined)).trim()
  // In a list the places of the others stay, and a message keeps its content.
  if (left === '' && path.length === 1) removeValue(at)(document)
  else setValue(at, left)(document)
})

/** Lets a node run once for each item of a list. */
export const takeList = (to: string, reference: string): Edit => setValue([...nodePath(to), 'for_each'], reference)

/** Takes a reference out of the list of a node; a list that is nothing else is removed. */
export const disconnectList = edit((document, to: string, source: string) => {
  const at = [...nodePath(to), 'for_each']
  if (typeof document.getIn(at) === 'string') return removeValue(at)(document)
  walk(document.getIn(at, true), at, (text, place) => {
    const left = replaceReferences(text, reference => (reference.source === source ? null : undefined))
    if (left !== text) setValue(place, left.trim())(document)
  })
})

export const parameterReference = (name: string): string => referenceText('input', [name])

function renameKey(document: Document, path: Path, name: string, next: string): void {
  const map = document.getIn(path)
  if (!isMap(map)) return
  const pair = map.items.find(item => keyText(item) === name)
  if (!pair) return
  if (isScalar(pair.key)) pair.key.value = next
  else pair.key = document.createNode(next)
}

const keyText = ({ key }: Pair): string => String(isScalar(key) ? key.value : key)

const idsOf = (document: Document): string[] => {
  const nodes = document.getIn(nodesPath)
  return isMap(nodes) ? nodes.items.map(keyText) : []
}

/** The members of nodes whose texts may hold references. */
const withReferences = ['inputs', 'when', 'for_each'] as const

/** Calls `visit` for each text in a member of each node, with the scalar's place. */
function visitMember(
  document: Document,
  member: (typeof withReferences)[number],
  visit: (text: string, at: Path) => void,
): void {
  for (const id of idsOf(document)) {
    const at = [...nodePath(id), member]
    walk(document.getIn(at, true), at, visit)
  }
}

function walk(node: unknown, at: Path, visit: (text: string, at: Path) => void): void {
  if (isScalar(node)) {
    if (typeof node.value === 'string') visit(node.value, at)
  } else if (isMap(node)) for (const pair of node.items) walk(pair.value, [...at, keyText(pair)], visit)
  else if (isSeq(node)) for (const [index, item] of node.items.entries()) walk(item, [...at, index], visit)
}

function renameInReferences(document: Document, of: Reference['root'], name: string, next: string): void {
  const rename = ({ root, path: [first, ...rest] }: Reference) =>
    root === of && String(first) === name ? { root, path: [next, ...rest] } : undefined
  for (const member of withReferences)
    visitMember(document, member, (text, at) => {
      const renamed = replaceReferences(text, rename)
      if (renamed !== text) setValue(at, renamed)(document)
    })
  for (const id of idsOf(document)) {
    const at = [...nodePath(id), 'defaults']
    const defaults = document.getIn(at)
    const names = isMap(defaults) ? defaults.items.map(keyText) : []
    for (const key of names) renameKey(document, at, key, replaceInDefault(key, rename))
  }
}

/** Removes the inputs that are nothing but a matching reference. Others stay, and the server says what they lack. */
function removeInputs(document: Document, matches: (reference: Reference) => boolean): void {
  const gone: Path[] = []
  visitMember(document, 'inputs', (text, at) => {
    if (!isReference(text)) return
    if (referencesOfText(text).some(matches)) gone.push(at)
  })
  for (const at of gone) {
    // Below the inputs themselves: an item of a list, or a member of one, becomes empty instead.
    if (at.length === 5) removeValue(at)(document)
    else setValue(at, '')(document)
  }
}
