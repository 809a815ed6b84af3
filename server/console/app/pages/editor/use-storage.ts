import { useMutation } from '@tanstack/react-query'
import { useMemo, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import { ApiFailure, api, dataOf, refresh, type Schema, useSession } from '../../api/client.ts'
import { announce } from '../../components/announcements.tsx'
import { useKeeping } from '../../components/use-keeping.ts'
import { editorText } from '../../text/editor.ts'
import { dropDraft, keepDraft, newWorkflow } from './drafts.ts'
import type { useDocument } from './use-document.ts'

/** Saves the text as a version, and keeps it in the browser until then. `source` is what the server has. */
export function useStorage(
  id: string,
  begun: { version: number; source: string; saved: string },
  { text, sound, parsed: { value } }: Pick<ReturnType<typeof useDocument>, 'text' | 'sound' | 'parsed'>,
) {
  const [version, setVersion] = useState(begun.version)
  const [saved, setSaved] = useState(begun.saved)
  const token = useSession().session.token.id
  const [, go] = useLocation()
  const unsaved = text !== saved

  const draft = useMemo(() => ({ version, saved, text, sound }), [version, saved, text, sound])
  const isForgotten = useRef(false)
  const forget = () => {
    isForgotten.current = true
    dropDraft(token, id)
  }
  useKeeping(draft, draft => {
    if (!isForgotten.current) keepDraft(token, id, draft, begun.source)
  })

  const { mutate, isPending, error, reset } = useMutation({
    mutationFn: async ({ force }: { force: boolean; text: string }) => {
      const body = value as Schema<'WorkflowFields'>
      if (id === newWorkflow) return (await dataOf(api.POST('/api/workflows', { body }))).workflow
      const headers = force ? {} : { 'if-match': `"${version}"` }
      return (await dataOf(api.PUT('/api/workflows/{id}', { params: { path: { id } }, body, headers }))).workflow
    },
    // Meanwhile a person may have typed more, which is not saved.
    onSuccess: (workflow, { text: sent }) => {
      announce('good', editorText.saved(workflow.version))
      setVersion(workflow.version)
      setSaved(sent)
      keepDraft(token, workflow.id, { version: workflow.version, saved: sent, text }, '')
      for (const part of ['list', 'versions', 'choice', 'nested']) void refresh('workflows', part)
      if (id !== newWorkflow) return
      forget()
      go(`/workflows/${workflow.id}`, { replace: true })
    },
  })
  const conflict = error instanceof ApiFailure && error.code === 'version_conflict'
  return {
    version,
    unsaved,
    save: () => mutate({ force: false, text }),
    saveAnyway: () => mutate({ force: true, text }),
    saving: isPending,
    conflict,
    failure: conflict ? null : error,
    dismiss: reset,
    /** Drops what this browser keeps of the workflow, because another text is opened in its place. */
    forget,
  }
}
