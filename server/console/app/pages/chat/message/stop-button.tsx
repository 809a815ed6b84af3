import { Square } from 'lucide-react'
import { Button } from '../../../components/button.tsx'
import { chatText } from '../../../text/chat.ts'

/** Stops an answer. The second press of a double click on the button that stood here before does not. */
export const StopButton = ({ stop }: { stop: () => void }) => (
  <Button icon={Square} onClick={event => event.detail < 2 && stop()} label={chatText.stop} />
)
