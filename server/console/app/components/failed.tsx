import { shellText } from '../text/shell.ts'
import { Button } from './button.tsx'
import { Notice } from './notice.tsx'

/** What stands in the place of something that could not be read, and how to try again. */
export function Failed({
  failure,
  retry,
  retryText = shellText.retry,
}: {
  failure: Error
  retry?: () => void
  retryText?: string
}) {
  return (
    <Notice kind="bad">
      <span className="min-w-0 flex-1">{failure.message}</span>
      {retry && (
        <Button small onClick={retry}>
          {retryText}
        </Button>
      )}
    </Notice>
  )
}
