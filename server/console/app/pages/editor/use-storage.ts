import { useMutation } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { useLocation } from 'wouter'
import { ApiFailure, api, dataOf, refresh, type Schema, useSession } from '../../api/client.ts'
import { announce } from '../../components/announcements.tsx'
import { editorText } from '../../text/editor.ts'
import { dropDraft, keepDraft, newWorkflow } from './drafts.ts'

/** Saves the text as a version, and keeps it in the browser until then. `source` is what the server has. */
export function useStorage(
  id: string,
  begun: { version: number; source: string; saved: string },
  text: string,
  value: Record<string, unknown> | undefined,
) {
  const [version, setVersion] = useState(begun.version)
  const [saved, setSaved] = useState(begun.saved)
  const token = useSession().session.token.id
  const [, go] = useLocation()
  const unsaved = text !== saved

  // `begun.source` is left out of the dependencies: it belongs to the version that was opened.
  useEffect(() => {
    const timer = setTimeout(() => keepDraft(token, id, { version, saved, text }, begun.source), 400)
    return () => clearTimeout(timer)
  }, [token, id, version, saved, text])

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
      dropDraft(token, id)
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
  }
}
