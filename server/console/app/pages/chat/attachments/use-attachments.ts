import { type ClipboardEvent, type DragEvent, useEffect, useRef, useState } from 'react'
import { api, at, useSession } from '../../../api/client.ts'
import { announce } from '../../../components/announcements.tsx'
import { randomId } from '../../../components/random-id.ts'
import { chatText as text } from '../../../text/chat.ts'
import { rememberPreview } from '../../playground/form/files.tsx'
import { type Attachment, kindNotTaken, maxAttachments, sortFile } from './attachment.ts'
import { storeFile } from './store-file.ts'

/** A file that a person has added to the next message. It has an id once the server has stored it. */
export interface Added extends Omit<Attachment, 'id'> {
  key: string
  id?: string
  /** Where this page can show it. */
  preview: string
}

/** Deletes a file that is not sent. */
async function unstore(id: string): Promise<void> {
  await api.DELETE('/std/v1/files/{id}', at({ id }))
}

/**
 * The files of the next message. Those that are not sent are deleted when the page is left. `features` are those of each
 * model that answers; `conversation` is the id of one that is kept.
 */
export function useAttachments(features: readonly (readonly string[])[], conversation: string | undefined) {
  const { can } = useSession()
  const [added, setAdded] = useState<readonly Added[]>([])
  /** Keys of those that were removed while they were being stored. */
  const removed = useRef(new Set<string>())
  /** Ids of files that are stored and not sent. */
  const unsent = useRef(new Set<string>())
  /** Files of the message, those among them that are not in the list yet: several may be added at once. */
  const taken = useRef(0)
  const isLeft = useRef(false)
  const [isOver, setOver] = useState(false)
  useEffect(() => {
    isLeft.current = false
    return () => {
      isLeft.current = true
      // The page Files lists those that cannot be deleted now.
      for (const id of unsent.current) unstore(id).catch(() => undefined)
      unsent.current.clear()
    }
  }, [])

  /** Says why a file is not added, and makes room for another one. */
  function refuse(why: string): void {
    taken.current--
    announce('bad', why)
  }

  async function add(file: File): Promise<void> {
    const sorted = await sortFile(file)
    if (isLeft.current) return
    if ('refused' in sorted) return refuse(text.refused(file.name, sorted))
    const lacking = kindNotTaken([sorted], features)
    if (lacking) return refuse(text.notTaken[lacking])
    const one: Added = { ...sorted, key: randomId(), preview: URL.createObjectURL(file) }
    setAdded(now => [...now, one])
    let id: string
    try {
      id = await storeFile(new File([file], one.name, { type: file.type }), conversation)
    } catch (thrown) {
      URL.revokeObjectURL(one.preview)
      setAdded(now => now.filter(({ key }) => key !== one.key))
      const why = text.notStored(file.name, (thrown as Error).message)
      return removed.current.has(one.key) ? announce('bad', why) : refuse(why)
    }
    if (isLeft.current || removed.current.has(one.key)) {
      URL.revokeObjectURL(one.preview)
      return unstoreRemoved(id)
    }
    unsent.current.add(id)
    rememberPreview(id, one.preview)
    setAdded(now => now.map(other => (other.key === one.key ? { ...other, id } : other)))
  }

  function unstoreRemoved(id: string): void {
    unsent.current.delete(id)
    unstore(id).catch((failure: Error) => announce('bad', failure.message))
  }

  function addAll(files: readonly File[]): void {
    const room = maxAttachments - taken.current
    if (files.length > room) announce('bad', text.tooMany(maxAttachments))
    const fitting = files.slice(0, room)
    taken.current += fitting.length
    for (const file of fitting) void add(file)
  }

  function remove(key: string): void {
    removed.current.add(key)
    taken.current--
    setAdded(now => now.filter(one => one.key !== key))
    const id = added.find(one => one.key === key)?.id
    if (id !== undefined) unstoreRemoved(id)
  }

  function take(event: ClipboardEvent | DragEvent, { files }: DataTransfer): void {
    setOver(false)
    if (files.length === 0) return
    event.preventDefault()
    addAll([...files])
  }

  return {
    added,
    /** Whether files can be added at all: they are stored on the server. */
    isAllowed: can('user:write'),
    isUploading: added.some(({ id }) => id === undefined),
    /** A kind that a model does not take, which was chosen after the file. */
    lacking: kindNotTaken(added, features),
    addAll,
    remove,
    /** Takes the files of this list out of it once they are sent; others may have been added meanwhile. */
    clear: () => {
      const sent = new Set(added.map(({ key }) => key))
      for (const { id } of added) if (id !== undefined) unsent.current.delete(id)
      taken.current -= added.length
      setAdded(now => now.filter(({ key }) => !sent.has(key)))
    },
    /** The files as those of a message. */
    sent: (): Attachment[] => added.map(({ id, kind, name }) => ({ id: id!, kind, name })),
    /** Whether a person drags files over the conversation. */
    isOver,
    /** For the element that files are dropped on. */
    dropProps: {
      onDrop: (event: DragEvent) => take(event, event.dataTransfer),
      onDragOver: (event: DragEvent) => {
        if (!event.dataTransfer.types.includes('Files')) return
        event.preventDefault()
        setOver(true)
      },
      onDragLeave: ({ currentTarget, relatedTarget }: DragEvent) => {
        if (!currentTarget.contains(relatedTarget as Node | null)) setOver(false)
      },
    },
    paste: (event: ClipboardEvent) => take(event, event.clipboardData),
  }
}
export type Attachments = ReturnType<typeof useAttachments>
