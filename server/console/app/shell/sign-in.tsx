import { useMutation } from '@tanstack/react-query'
import { type FormEvent, useEffect, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import { api, dataOf, type Session } from '../api/client.ts'
import { Button } from '../components/button.tsx'
import { CopyText } from '../components/code.tsx'
import { TextField } from '../components/fields.tsx'
import { Notice } from '../components/page.tsx'
import { shellText } from '../text/shell.ts'
import { Mark } from './mark.tsx'

/** Exchanges a token, or the one-time code of a link, for a session. The token is not kept in the browser. */
export function SignIn({ reason, signedIn }: { reason?: string | undefined; signedIn: (session: Session) => void }) {
  const [, go] = useLocation()
  const [code] = useState(() => new URLSearchParams(location.hash.slice(1)).get('code'))
  const used = useRef(false)
  const { mutate, error, isPending, isIdle } = useMutation({
    mutationFn: (by: { token: string } | { code: string }) => dataOf(api.POST('/api/session', { body: by })),
    onSuccess(session, by) {
      if ('code' in by) go('/', { replace: true })
      signedIn(session)
    },
  })
  const failure = isIdle ? reason : error?.message

  useEffect(() => {
    if (code === null || used.current) return
    used.current = true
    // The code must not stay in the address bar or in the history.
    history.replaceState(null, '', location.pathname)
    mutate({ code })
  })

  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const token = new FormData(event.currentTarget).get('token')
    if (typeof token === 'string' && token.trim() !== '') mutate({ token: token.trim() })
  }

  return (
    <main className="grid min-h-dvh place-items-center p-4">
      <title>{shellText.signIn.title}</title>
      <form onSubmit={submit} className="bg-surface border-line w-full max-w-sm space-y-4 rounded-lg border p-6">
        <Mark className="size-10" />
        <h1 className="text-xl font-semibold tracking-tight">{shellText.signIn.title}</h1>
        {failure !== undefined && <Notice kind="bad">{failure}</Notice>}
        <TextField
          label={shellText.signIn.token}
          hint={shellText.signIn.tokenHint}
          name="token"
          type="password"
          autoComplete="current-password"
          autoFocus
          required
          spellCheck={false}
        />
        <Button
          primary
          type="submit"
          busy={isPending}
          className="w-full"
          label={isPending && code !== null ? shellText.signIn.withCode : shellText.signIn.submit}
        />
        <p className="text-muted text-xs">
          {shellText.signIn.help} <CopyText>{shellText.signIn.command}</CopyText> {shellText.signIn.helpEnd}
        </p>
      </form>
    </main>
  )
}
