import { gunzipSync } from 'node:zlib'
import type { AnswerBytes } from './cluster-api.ts'
import { type NodeObject, requestedByOthers, trimmedNode } from './node-cards.ts'
import { type PodObject, type PodState, podStateIn } from './pod-state.ts'

/** What is read of each page of a list, by its kind: the pods of a server, nodes, or GPUs that pods of others ask for. */
export type ListKind =
  | { kind: 'pods'; serverId: string }
  | { kind: 'nodes'; resource: string }
  | { kind: 'requests'; resource: string; serverId: string }

export interface ListItems {
  pods: PodState
  nodes: NodeObject
  /** One sum of a page. */
  requests: number
}

export interface ListPage {
  /** What is read of each object, as JSON: what has not changed since the last list need not be parsed again. */
  texts: string[]
  /** By which the next page is asked for; empty after the last one. */
  next: string
  /** The version of the whole list. */
  version: string
}

/** Bytes that an answer may have uncompressed. */
const mostBytes = 512 << 20

/** Reads a page of a list: an object has kilobytes, most of them of no use here. Throws for what is no JSON. Pure. */
export function pageIn({ bytes, isCompressed }: AnswerBytes, of: ListKind): ListPage {
  const text = (isCompressed ? gunzipSync(bytes, { maxOutputLength: mostBytes }) : bytes).toString()
  const { metadata = {}, items } = JSON.parse(text) as {
    metadata?: { continue?: string; resourceVersion?: string }
    items?: object[] | null
  }
  return {
    texts: itemsOf(items ?? [], of).map(item => JSON.stringify(item)),
    next: metadata.continue ?? '',
    version: metadata.resourceVersion ?? '',
  }
}

function itemsOf(objects: readonly object[], of: ListKind): ListItems[keyof ListItems][] {
  if (of.kind === 'pods') return objects.flatMap(object => podStateIn(object as PodObject, of.serverId) ?? [])
  if (of.kind === 'nodes') return objects.map(object => trimmedNode(object, of.resource))
  return [requestedByOthers(objects, of.resource, of.serverId)]
}
